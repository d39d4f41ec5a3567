"""Which changes of an effect loosen it."""

import pytest
from tests.policy.bundles import bundle, rule

from subluminal.policy.diff.effects import effect_changes


def told(kind: str, old: dict, new: dict) -> list[tuple[str, str]]:
    before, after = bundle(rule(kind, **old)).rules[0], bundle(rule(kind, **new)).rules[0]
    return [(str(change.severity), change.summary) for change in effect_changes(before, after)]


@pytest.mark.parametrize(
    ("kind", "strict", "loose", "summary"),
    [
        ("budget", {"limit_calls": 2}, {"limit_calls": 3}, "limit_calls raised from `2` to `3`"),
        ("budget", {"limit_cost_units": 5}, {}, "limit_cost_units removed, was `5`"),
        ("budget", {"cost_units_per_call": 5}, {}, "cost_units_per_call lowered from `5` to `1`"),
        ("budget", {}, {"scope": "tool"}, "scope changed from `run` to `tool`"),
        ("budget", {"scope": "tool"}, {"scope": "server_tool"}, "scope changed from `tool` to `server_tool`"),
        ("budget", {}, {"count": "executed"}, "count changed from `attempts` to `executed`"),
        ("budget", {"on_exceed": "TERMINATE_RUN"}, {}, "on_exceed changed from `TERMINATE_RUN` to `BLOCK`"),
        ("rate_limit", {}, {"capacity": 11}, "capacity raised from `10` to `11`"),
        ("rate_limit", {}, {"refill_tokens": 20}, "refill_rate raised from `10` tokens per second to `20` tokens per second"),
        ("rate_limit", {}, {"refill_period_ms": 500}, "refill_rate raised from `10` tokens per second to `20` tokens per second"),
        ("rate_limit", {"cost_tokens_per_call": 2}, {}, "cost_tokens_per_call lowered from `2` to `1`"),
        ("rate_limit", {"on_limit": "BLOCK"}, {}, "on_limit changed from `BLOCK` to `THROTTLE`"),
        ("breaker", {}, {"repeat_threshold": 6}, "repeat_threshold raised from `5` to `6`"),
        ("breaker", {}, {"repeat_window_ms": 900}, "repeat_window_ms lowered from `1000` to `900`"),
        ("breaker", {"error_threshold": 3, "window_ms": 9}, {"error_threshold": 4, "window_ms": 9}, "error_threshold raised from `3` to `4`"),
        ("dedupe", {}, {"window_ms": 10}, "window_ms lowered from `1000` to `10`"),
        ("deny", {}, {"action": "REJECT_WITH_HINT"}, "action changed from `BLOCK` to `REJECT_WITH_HINT`"),
        ("deny", {}, {"require": "approval"}, "require added: `approval`"),
        ("allow", {"require": "approval"}, {}, "require removed, was `approval`"),
        ("allow", {"require": "human", "approver_role": "x"}, {"require": "human"}, "approver_role removed, was `x`"),
        ("allow", {"require": "human", "expires_ms": 1}, {"require": "human", "expires_ms": 2}, "expires_ms raised from `1` to `2`"),
    ],
)  # fmt: skip
def test_loosening_is_critical_and_the_way_back_a_warning(kind, strict, loose, summary):
    assert told(kind, strict, loose) == [("critical", summary)]
    ((severity, _),) = told(kind, loose, strict)
    assert severity == "warn"


@pytest.mark.parametrize(
    ("kind", "new"),
    [
        ("deny", {"message": "other"}),
        ("deny", {"reason_code": "OTHER"}),
        ("deny", {"hint_text": "x"}),
        ("deny", {"suggest": {"a": {"set": 1}}}),
        ("budget", {"hint_text": "x"}),
        ("rate_limit", {"backoff_ms": 5}),
        ("breaker", {"terminate_code": "x"}),
    ],
)
def test_what_people_read_is_for_information(kind, new):
    ((severity, _),) = told(kind, {}, new)
    assert severity == "info"


def test_another_requirement_is_for_information():
    assert told("deny", {"require": "human"}, {"require": "ticket"}) == [
        ("info", "require changed from `human` to `ticket`")
    ]


def test_the_same_rate_written_differently_is_not_a_change():
    assert told("rate_limit", {}, {"refill_tokens": 1, "refill_period_ms": 100}) == []


def test_a_removed_pair_of_a_breaker_loosens():
    both = {"error_threshold": 3, "window_ms": 9}
    assert [severity for severity, _ in told("breaker", both, {})] == ["critical", "critical"]


def test_fields_are_named_by_their_path():
    before, after = (bundle(rule("budget", limit_calls=n)).rules[0] for n in (1, 2))
    (change,) = effect_changes(before, after)
    assert (change.field, change.old, change.new) == ("effect.budget.limit_calls", 1, 2)
    slow, fast = (bundle(rule("rate_limit", refill_tokens=n)).rules[0] for n in (1, 2))
    (change,) = effect_changes(slow, fast)
    assert (change.field, change.old, change.new) == ("effect.rate_limit.refill_rate", 0.001, 0.002)
