"""Write tools that a policy leaves without a limit."""

import pytest
from tests.policy.bundles import ACCUMULATORS, bundle, rule, tools

from subluminal.policy.lint import limits
from subluminal.policy.lint.limits import unlimited_writes

WRITES = {"risk_class": ["write_like"]}
TAG = rule("tag", match=tools("write_*", "delete_*"))


def told(*rules) -> list[str]:
    return [each.message for each in unlimited_writes(bundle(*rules).rules)]


def test_writes_that_nothing_limits_are_named():
    assert told(TAG) == ["write tools without a limit: `write_*`, `delete_*`"]
    assert told(rule("tag")) == ["write tools without a limit: every tool it matches"]
    regex = rule("tag", match={"tool_name": {"regex": ["^put"]}})
    assert told(regex) == ["write tools without a limit: `^put`"]


@pytest.mark.parametrize("kind", [*ACCUMULATORS, "deny"])
@pytest.mark.parametrize("match", [WRITES, {}, tools("*"), tools("write_*", "delete_*")])
def test_any_limit_or_deny_that_covers_them_will_do(kind, match):
    assert told(TAG, rule(kind, match=match)) == []


def test_each_pattern_may_have_its_own_limit():
    assert told(TAG, rule("budget", match=tools("write_*"))) == [
        "write tools without a limit: `delete_*`"
    ]
    assert told(TAG, rule("budget", match=tools("write_*")), rule("deny", match=tools("d*"))) == []


@pytest.mark.parametrize(
    "limit",
    [
        rule("budget", match=WRITES, enabled=False),
        rule("budget", match={"risk_class": ["other"]}),
        rule("budget", match={**WRITES, "args": {"has_keys": ["k"]}}),
        rule("allow"),
    ],
)
def test_what_does_not_cover_them_is_no_limit(limit):
    assert len(told(TAG, limit)) == 1


def test_a_limit_by_class_must_stand_below_its_tag():
    assert len(told(rule("budget", match=WRITES), TAG)) == 1
    assert told(rule("budget"), TAG) == []


def test_other_tags_are_left_alone():
    assert told(rule("tag", add_risk_class=["read_like"]), rule("tag", "t", enabled=False)) == []


def test_the_pairs_compared_are_bounded(monkeypatch):
    monkeypatch.setattr(limits, "MAX_PAIRS", 1)
    budgets = [rule("budget", f"b{n}", match={"args": {"has_keys": ["k"]}}) for n in range(3)]
    assert told(*budgets, TAG) == []
