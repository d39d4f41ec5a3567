"""Rules about contents and sequences that never act, and policies that end soon."""

import pytest
from tests.policy.bundles import bundle, plain, rule, tools
from tests.requirements import requirement

from subluminal.policy.lint.linting import remarks
from subluminal.timestamps import parse_rfc3339

END = "2030-01-15T00:00:00Z"
DAY_MS = 24 * 3_600_000


def told(*rules, wall_ms=None, **changes):
    given = plain(*rules, **changes)
    found = remarks(bundle(*rules, **changes), given, wall_ms)
    return [each.misfit.message for each in found]


@requirement("trust:lint-contents")
def test_texts_that_contradict_each_other_never_match():
    match = {"text": {"any_of": ["drop table"], "none_of": ["DROP"]}}
    assert told(rule("deny", match=match)) == [
        "can never match: every text of `any_of` contains one of `none_of`"
    ]
    assert told(rule("deny", match={"text": {"any_of": ["drop"], "none_of": ["table"]}})) == []


@requirement("trust:lint-contents")
def test_a_sequence_whose_match_admits_no_such_call():
    made = rule("sequence", match=tools("read*"), pattern=["read_file", "*", "send"])
    assert told(made) == ["can never be complete: `match` admits no call of `send`"]
    assert told(rule("sequence", match=tools("read*", "send"))) == []
    assert told({**made, "enabled": False}) == ["the rule is disabled and has no effect"]


@pytest.mark.parametrize(
    ("left_ms", "messages"),
    [
        (15 * DAY_MS, []),
        (14 * DAY_MS, ["the policy refuses every call in 14 days"]),
        (DAY_MS, ["the policy refuses every call in 1 day"]),
        (DAY_MS - 1, ["the policy refuses every call in less than a day"]),
        (0, ["has passed: every call is refused"]),
        (-DAY_MS, ["has passed: every call is refused"]),
    ],
)
@requirement("trust:lint-contents")
def test_a_policy_that_ends_soon(left_ms, messages):
    wall_ms = parse_rfc3339(END) - left_ms
    assert told(rule("deny"), expires_at=END, wall_ms=wall_ms) == messages


def test_nobody_warns_without_a_clock_or_an_end():
    assert told(rule("deny"), expires_at=END) == told(rule("deny"), wall_ms=0) == []


def test_predicates_about_an_argument_that_contradict_each_other():
    never = "can never match: the predicates about `a` contradict each other"
    assert told(
        rule("deny", match={"args": {"key_equals": {"a": 1}, "key_not_equals": {"a": 1.0}}})
    ) == [never]
    assert (
        told(rule("deny", match={"args": {"key_in": {"a": [1, 2]}, "key_not_equals": {"a": 1}}}))
        == []
    )
    bounds = {"key_equals": {"a": 1}, "numeric_range": {"a": {"gt": 1}}}
    assert told(rule("deny", match={"args": bounds})) == [never]


def test_a_suggestion_that_helps_because_of_texts_data_or_numbers():
    mend = {"a": {"set": 1}}
    for match in (
        {"text": {"any_of": ["x"]}},
        {"data_any": ["PCI"]},
        {"args": {"key_not_equals": {"a": 1}}},
    ):
        assert told(rule("deny", match=match, suggest=mend)) == []
    clamp = {"a": {"clamp_max": 5}}
    assert (
        told(rule("deny", match={"args": {"numeric_range": {"a": {"gt": 5}}}}, suggest=clamp)) == []
    )
    vain = told(rule("deny", match={"args": {"numeric_range": {"a": {"gt": 4}}}}, suggest=clamp))
    assert vain == ["cannot help: the corrected arguments would match this rule again"]


def test_a_sequence_is_no_limit_of_writes():
    assert told(rule("tag", match=tools("push")), rule("sequence")) == [
        "no rule limits these write tools: `push`"
    ]
