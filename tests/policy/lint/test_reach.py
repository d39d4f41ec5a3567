"""Rules that can never act."""

import pytest
from tests.policy.bundles import bundle, rule, tools

from subluminal.policy.lint import reach
from subluminal.policy.lint.reach import shadowed_rules, unreachable_rules


def unreachable(*rules) -> list[tuple[int, str, str | None]]:
    return [
        (each.path[1], each.message, each.hint) for each in unreachable_rules(bundle(*rules).rules)
    ]


def shadowed(*rules) -> list[tuple[int, str]]:
    return [(each.path[1], each.message) for each in shadowed_rules(bundle(*rules).rules)]


WRITES = {"risk_class": ["write_like"]}


def test_a_class_that_no_tag_above_adds_never_matches():
    ((index, message, hint),) = unreachable(rule("deny", match=WRITES), rule("tag"))
    assert index == 0
    assert message == "can never match: no enabled tag rule above adds `write_like` to these tools"
    assert hint == "put a tag rule above this one"


def test_a_misspelt_class_gets_a_suggestion():
    ((_, _, hint),) = unreachable(rule("tag"), rule("deny", match={"risk_class": ["write_lik"]}))
    assert hint == "did you mean `write_like`?"


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        (rule("tag"), 0),
        (rule("tag", enabled=False), 1),
        (rule("tag", add_risk_class=["other", "write_like"]), 0),
        (rule("tag", match=tools("write_*")), 0),
        (rule("tag", match=tools("read_*")), 1),
    ],
)
def test_a_tag_counts_if_it_can_meet_the_rule(tag, expected):
    found = unreachable(tag, rule("deny", match={**WRITES, **tools("write_file")}))
    assert len(found) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"key_equals": {"k": 1}, "key_in": {"k": [2]}}, 1),
        ({"key_equals": {"k": 1}, "key_in": {"k": [1.0]}}, 0),
        ({"key_equals": {"k": "a"}, "numeric_range": {"k": {"min": 1}}}, 1),
        ({"key_equals": {"k": 5}, "numeric_range": {"k": {"min": 1, "max": 4}}}, 1),
        ({"key_in": {"k": [1, 9]}, "numeric_range": {"k": {"min": 5}}}, 0),
        ({"key_in": {"k": [1, 2]}, "numeric_range": {"k": {"min": 5}}}, 1),
        ({"numeric_range": {"k": {"min": 5}}}, 0),
        ({"key_equals": {"k": 1}, "key_in": {"j": [2]}}, 0),
    ],
)
def test_predicates_that_exclude_each_other_never_match(args, expected):
    found = unreachable(rule("deny", match={"args": args}))
    assert len(found) == expected


def test_disabled_rules_are_not_looked_at():
    assert unreachable(rule("deny", match=WRITES, enabled=False)) == []
    assert shadowed(rule("allow"), rule("deny", enabled=False)) == []


def test_a_rule_below_one_that_settles_all_it_matches_never_acts():
    assert shadowed(rule("allow"), rule("deny", match=tools("x"))) == [
        (1, "can never act: rule `allow` above allows all that it matches")
    ]
    assert shadowed(rule("deny", match=tools("a*")), rule("allow", match=tools("ab"))) == [
        (1, "can never act: rule `deny` above denies all that it matches")
    ]
    assert shadowed(rule("deny", match=tools("ab", "c")), rule("allow", match=tools("ab"))) == [
        (1, "can never act: rule `deny` above denies all that it matches")
    ]


@pytest.mark.parametrize(
    "rules",
    [
        (rule("allow", match=tools("x")), rule("deny")),
        (rule("allow", enabled=False), rule("deny")),
        (rule("allow"), rule("budget", match=tools("x"))),
        (rule("budget"), rule("deny")),
        (rule("deny", match=tools("a")), rule("allow", match=tools("a", "b"))),
        (rule("deny", match=tools("a")), rule("allow", match={"tool_name": {"regex": ["a"]}})),
    ],
)
def test_a_rule_that_may_still_act_is_left_alone(rules):
    assert shadowed(*rules) == []


def test_a_tag_between_two_rules_may_give_the_lower_one_calls():
    upper, lower = rule("allow", match=WRITES), rule("deny", match=WRITES)
    assert len(shadowed(rule("tag"), upper, lower)) == 1
    assert shadowed(rule("tag"), upper, rule("tag", "t2", match=tools("x")), lower) == []
    other = rule("tag", "t2", add_risk_class=["other"])
    assert len(shadowed(rule("tag"), upper, other, lower)) == 1
    assert len(shadowed(rule("tag"), upper, rule("tag", "t2", enabled=False), lower)) == 1


def test_the_pairs_compared_are_bounded(monkeypatch):
    monkeypatch.setattr(reach, "MAX_PAIRS", 1)
    rules = [rule("deny", f"d{n}") for n in range(4)]
    assert len(shadowed(*rules)) == 1
    tags = [rule("tag", "a"), rule("tag", "b")]
    assert unreachable(*tags, rule("deny", match={"risk_class": ["nobody"]})) == []
