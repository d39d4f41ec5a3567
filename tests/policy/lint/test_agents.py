"""Lint about who acts: rights that anyone can claim, and policies silent about the unregistered."""

import pytest
from tests.policy.bundles import rule, tools
from tests.policy.lint.test_linting import told
from tests.requirements import requirement

PII = {"data_labels_any": ["public"]}
TICKET = {"context": {"has_keys": ["ticket"]}}


def warnings(*rules):
    return [each for each in told(*rules) if each.startswith("warning")]


@requirement("trust:lint-claimable")
@pytest.mark.parametrize(
    ("match", "resting_on"),
    [
        (PII, "`data_labels_any`"),
        (TICKET, "`context`"),
        ({**PII, **TICKET, **tools("x")}, "`data_labels_any` and `context`"),
        ({**PII, "agent_roles_any": ["x"]}, None),
        ({**PII, "environment": ["dev"]}, None),
        ({**TICKET, "args": {"has_keys": ["a"]}}, None),
        ({"tool_provider": ["mcp"]}, None),
    ],
)
def test_an_allow_that_anyone_can_claim(match, resting_on):
    found = [each for each in warnings(rule("allow", match=match), rule("deny")) if "claim" in each]
    assert found == (
        []
        if resting_on is None
        else [
            "warning: rule `allow`: `match."
            f"{resting_on.split('`')[1]}`: anyone can claim this: the allow rests on {resting_on}"
            " alone, which the caller gives"
        ]
    )


@pytest.mark.parametrize("more", [{"enabled": False}, {"require": "approval"}])
def test_an_allow_that_does_not_open_is_no_right(more):
    assert warnings(rule("allow", match=PII, **more), rule("deny")) == []


def test_denies_may_rest_on_labels():
    assert warnings(rule("deny", match=PII)) == []


CI = {"agent_type": ["pr_agent"]}


@requirement("trust:lint-unregistered")
@pytest.mark.parametrize(
    ("rules", "is_silent"),
    [
        ([rule("deny", match={**CI, **tools("sh")})], True),
        ([rule("allow", match=CI)], True),
        ([rule("allow", match=CI), rule("deny", "else")], False),
        ([rule("allow", match={**CI, **tools("a")}), rule("deny", "b", match=tools("b"))], True),
        ([rule("deny", match=CI), rule("deny", "none", match={"registered": False})], False),
        (
            [
                rule("deny", match={**CI, **tools("a")}),
                rule("deny", "none", match={"registered": False, **tools("b")}),
            ],
            True,
        ),
        ([rule("budget", match={"trust_level_min": "basic"}), rule("budget", "all")], False),
        ([rule("budget", match={"trust_level_min": "basic"}), rule("allow", "all")], True),
        (
            [
                rule("budget", match={"registered": True}),
                rule("deny", "x", match={"args": {"has_keys": ["a"]}}),
            ],
            True,
        ),
        ([rule("deny", match={"registered": False})], False),
        ([rule("deny", match={"environment": ["prod"]})], False),
        ([rule("deny", match=CI, enabled=False)], False),
        ([rule("tag", match=CI, add_risk_class=["x"])], False),
        ([rule("deny", match={"trust_level_min": "untrusted"})], False),
        ([rule("deny", match={"delegation_depth_min": 2})], False),
        ([rule("allow", match=CI), rule("deny", "b", match={"delegation_depth_min": 2})], True),
    ],
)
def test_policies_that_are_silent_about_the_unregistered(rules, is_silent):
    found = [each for each in warnings(*rules) if "not registered, and this one" in each]
    assert len(found) == is_silent


@pytest.mark.parametrize(
    ("match", "clauses"),
    [
        ({"agent_type": ["x"]}, ["agent_type"]),
        ({"agent_roles_any": ["x"]}, ["agent_roles_any"]),
        ({"trust_level_min": "basic"}, ["trust_level_min"]),
        ({"trust_level_min": "untrusted", "delegation_depth_min": 1}, []),
    ],
)
def test_nobody_is_unregistered_and_has_what_only_the_registered_have(match, clauses):
    found = [
        each
        for each in warnings(rule("deny", match={"registered": False, **match}))
        if "can never match" in each
    ]
    assert [each.split("`")[3] for each in found] == [f"match.{name}" for name in clauses]


def test_a_type_that_is_like_a_known_one_is_a_suggestion_only():
    match = {"agent_type": ["pr_agnt", "pr_agent", "sweeper"]}
    found = told(rule("deny", match=match), rule("deny", "none", match={"registered": False}))
    assert found == [
        "note: rule `deny`: `match.agent_type[0]`: `pr_agnt` is like a type that Agent-SPM names"
    ]


def test_contexts_that_contradict_themselves():
    context = {"key_equals": {"a": 1}, "key_in": {"a": [2]}}
    (found,) = warnings(rule("deny", match={"context": context}))
    assert "`match.context`: can never match" in found


@pytest.mark.parametrize("name", ["environment", "agent_type", "tool_provider", "data_labels_any"])
def test_empty_lists_match_everything(name):
    assert any("is empty" in each for each in warnings(rule("deny", match={name: []})))


@pytest.mark.parametrize(
    ("match", "remark"),
    [
        ({"environment": ["dev", "*"]}, "environment[1]`: `*` matches only an environment"),
        ({"environment": ["prod-*"]}, "environment[0]`: `prod-*` matches only an environment"),
        ({"tool_provider": ["*"]}, "tool_provider[0]`: `*` matches only a provider"),
        ({"data_labels_any": ["P*"]}, "data_labels_any[0]`: `P*` matches only a label"),
    ],
)
def test_names_that_look_like_globs(match, remark):
    assert warnings(rule("deny", match=match)) == [
        f"warning: rule `deny`: `match.{remark} with this very name"
    ]


def test_rules_about_different_agents_do_not_shadow_each_other():
    prod, dev = {"environment": ["prod"]}, {"environment": ["dev"]}
    assert warnings(rule("deny", match=prod), rule("allow", match=dev)) == []
    found = warnings(rule("deny", match=prod), rule("allow", match=prod))
    assert ["has no effect" in each for each in found] == [True]
