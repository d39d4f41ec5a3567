"""Cases and explain about who acts: facts in `identity`, and what a program says of each call."""

import msgspec
import pytest
from tests.policy.bundles import plain, rule, tools
from tests.policy.test_case_running import call, run
from tests.requirements import requirement

from subluminal.errors import InvalidInput
from subluminal.policy.case_agents import CaseIdentity
from subluminal.policy.casefile import parse_cases

FACTS = {
    "environment": "staging",
    "agent_type": "pr_agent",
    "trust_level": "verified",
    "roles": ["fix"],
    "registered": True,
    "delegation_depth": 2,
}
ALL = {
    "environment": ["staging"],
    "agent_type": ["pr_agent"],
    "trust_level_min": "verified",
    "agent_roles_any": ["fix"],
    "registered": True,
    "delegation_depth_min": 2,
}


@requirement("trust:case-facts")
@pytest.mark.parametrize("left_out", [None, *FACTS])
def test_every_fact_counts(left_out):
    facts = {name: value for name, value in FACTS.items() if name != left_out}
    action = "BLOCK" if left_out is None else "ALLOW"
    assert run([call(action)], rule("deny", match=ALL), identity=facts).passed


@requirement("trust:case-facts")
def test_what_a_program_says_counts():
    rules = (
        rule("deny", "labels", match={"data_labels_any": ["pii"]}),
        rule("deny", "provider", match={"tool_provider": ["built-in"]}),
        rule("deny", "context", match={"context": {"key_equals": {"a": 1}}}),
        rule("deny", "claims", match={"environment": ["prod"]}),
    )

    def wants(rule_id, **said):
        return {"server": "s", "tool": "t", **said, "want": {"rule_id": rule_id}}

    calls = [
        wants(None),
        wants("labels", labels=["pii"]),
        wants("provider", provider="built-in"),
        wants("context", context={"a": 1}),
        wants("claims", claims={"environment": "prod", "roles": ["x"]}),
        wants(None, claims={"environment": "dev"}),
    ]
    assert run(calls, *rules).passed


def test_trust_is_lost_by_refusals_only_where_the_case_says_so():
    rules = (rule("allow", match={"trust_level_min": "verified", **tools("t")}), rule("deny"))
    refused = [call("BLOCK", tool="rm") for _ in range(4)]
    keeps = {"trust_level": "verified"}
    loses = {**keeps, "trust_after_denials": "basic"}
    assert run([*refused, call("ALLOW")], *rules, identity=keeps).passed
    assert run([*refused, call("BLOCK")], *rules, identity=loses).passed


def test_selectors_compare_the_environment_too():
    in_prod = {"bundle": plain(rule("deny"), selectors={"env": ["prod"]})}
    for identity, action in (
        ({"environment": "prod"}, "BLOCK"),
        ({"env": "prod"}, "BLOCK"),
        ({"env": "prod", "environment": "staging"}, "BLOCK"),
        ({"environment": "staging"}, "ALLOW"),
        ({}, "ALLOW"),
    ):
        assert run([call(action)], **in_prod, identity=identity).passed
    assert CaseIdentity().identity.env == "dev"


def test_claims_need_what_their_rules_ask():
    asked = []
    denying = rule("deny", match={"environment": ["prod"], "targets": {"opaque": True}})
    calls = [call("ALLOW"), call("BLOCK", claims={"environment": "prod"})]
    assert run(calls, denying, targets_of=lambda *given: asked.append(given)).passed
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("identity", "said", "message"),
    [
        ({"trust_level": "divine"}, {}, "unknown value `divine`"),
        ({"delegation_depth": -1}, {}, "expected a whole number of at least 0, got `-1`"),
        ({"role": ["x"]}, {}, "unknown field `role`"),
        ({}, {"claims": {"registered": True}}, "unknown field `registered`"),
        ({}, {"claims": {"roles": "x"}}, "expected a list, got a string `x`"),
        ({}, {"claims": {"delegation_depth": -1}}, "of at least 0, got `-1`"),
        ({}, {"labels": "pii"}, "expected a list, got a string `pii`"),
    ],
)
def test_mistakes_are_named(identity, said, message):
    case = {"bundle": plain(), "identity": identity, "calls": [call(**said)]}
    with pytest.raises(InvalidInput) as error:
        parse_cases(msgspec.json.encode(case), "c.json")
    assert message in str(error.value.problems[0])
