"""Rules that can never act, writes that nothing limits, and the index that finds both."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.bundles import ACCUMULATORS, bundle, rule, tools

from subluminal.contracts.bundle import Match, NameMatch
from subluminal.policy.covering import covers
from subluminal.policy.lint import reach
from subluminal.policy.lint.reach import (
    CoverIndex,
    shadowed_rules,
    unlimited_writes,
    unreachable_rules,
)


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
    assert hint == "put a tag rule that adds the class above this rule"


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
        (1, "has no effect: rule `allow` above allows every call that it matches")
    ]
    assert shadowed(rule("deny", match=tools("a*")), rule("allow", match=tools("ab"))) == [
        (1, "has no effect: rule `deny` above denies every call that it matches")
    ]
    assert shadowed(rule("deny", match=tools("ab", "c")), rule("allow", match=tools("ab"))) == [
        (1, "has no effect: rule `deny` above denies every call that it matches")
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


TAG = rule("tag", match=tools("write_*", "delete_*"))


def unlimited(*rules) -> list[str]:
    return [each.message for each in unlimited_writes(bundle(*rules).rules)]


def test_writes_that_nothing_limits_are_named():
    assert unlimited(TAG) == ["no rule limits these write tools: `write_*`, `delete_*`"]
    assert unlimited(rule("tag")) == [
        "no rule limits these write tools: every tool that this tag matches"
    ]
    regex = rule("tag", match={"tool_name": {"regex": ["^put"]}})
    assert unlimited(regex) == ["no rule limits these write tools: `^put`"]


@pytest.mark.parametrize("kind", [*ACCUMULATORS, "deny"])
@pytest.mark.parametrize("match", [WRITES, {}, tools("*"), tools("write_*", "delete_*")])
def test_any_limit_or_deny_that_covers_them_will_do(kind, match):
    assert unlimited(TAG, rule(kind, match=match)) == []


def test_each_pattern_may_have_its_own_limit():
    assert unlimited(TAG, rule("budget", match=tools("write_*"))) == [
        "no rule limits these write tools: `delete_*`"
    ]
    assert (
        unlimited(TAG, rule("budget", match=tools("write_*")), rule("deny", match=tools("d*")))
        == []
    )


@pytest.mark.parametrize(
    "limit",
    [
        rule("budget", match=WRITES, enabled=False),
        rule("budget", match={"risk_class": ["other"]}),
        rule("budget", match={**WRITES, "args": {"has_keys": ["k"]}}),
        rule("allow"),
    ],
)
def test_a_rule_that_does_not_cover_the_writes_is_not_a_limit(limit):
    assert len(unlimited(TAG, limit)) == 1


def test_a_limit_by_class_must_stand_below_its_tag():
    assert len(unlimited(rule("budget", match=WRITES), TAG)) == 1
    assert unlimited(rule("budget"), TAG) == []


def test_other_tags_are_left_alone():
    assert (
        unlimited(rule("tag", add_risk_class=["read_like"]), rule("tag", "t", enabled=False)) == []
    )


def test_the_limits_compared_are_bounded(monkeypatch):
    monkeypatch.setattr(reach, "MAX_PAIRS", 1)
    budgets = [rule("budget", f"b{n}", match={"args": {"has_keys": ["k"]}}) for n in range(3)]
    assert unlimited(*budgets, TAG) == []


globs = st.lists(st.text("ab*?[]", min_size=1, max_size=4), max_size=2)
names = st.builds(NameMatch, glob=globs, regex=st.lists(st.sampled_from(["a", ".*"]), max_size=1))
matches = st.builds(Match, tool_name=st.none() | names)


@given(st.lists(matches, max_size=6), matches)
@settings(max_examples=500)
def test_whatever_covers_a_match_is_a_candidate(wide, narrow):
    index = CoverIndex()
    for number, match in enumerate(wide):
        index.add(number, match)
    covering = {number for number, match in enumerate(wide) if covers(match, narrow)}
    assert covering <= set(index.candidates(narrow))


def test_a_match_for_other_tools_is_not_a_candidate():
    index = CoverIndex()
    for number, glob in enumerate(["a", "ab*", "b*", "*", "*c"]):
        index.add(number, Match(tool_name=NameMatch(glob=[glob])))
    assert index.candidates(Match(tool_name=NameMatch(glob=["abc"]))) == [1, 3, 4]
    assert index.candidates(Match()) == [3]
