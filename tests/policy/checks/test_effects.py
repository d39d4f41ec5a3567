"""Effects that cannot be meant, kind by kind (Pack 2.5)."""

import pytest
from tests.policy.bundles import EFFECTS, bundle, rule

from subluminal.policy.checks.effects import MAX_AMOUNT, effect_misfits


def told(kind: str, **changes) -> list[str]:
    (each,) = bundle(rule(kind, **changes)).rules
    return [f"{'.'.join(map(str, found.path))}: {found.message}" for found in effect_misfits(each)]


@pytest.mark.parametrize("kind", [kind for kind in EFFECTS if kind != "pin"])
def test_a_sound_effect_has_no_misfits(kind):
    assert told(kind) == []


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("allow", {"action": "BLOCK"}, "effect.action: an allow rule cannot BLOCK"),
        ("allow", {"action": "REJECT_WITH_HINT"}, "effect.action: an allow rule cannot REJECT_WITH_HINT"),
        ("deny", {"action": "ALLOW"}, "effect.action: a deny rule cannot ALLOW"),
        ("deny", {"reason_code": " "}, "effect.reason_code: must not be empty"),
        ("allow", {"suggest": {"a": {"set": 1}}}, "effect.suggest: only a deny rule can suggest other arguments"),
        ("deny", {"approver_role": "x"}, "effect.approver_role: means nothing without `require`"),
        ("deny", {"expires_ms": 5}, "effect.expires_ms: means nothing without `require`"),
        ("deny", {"require": "approval", "expires_ms": 0}, "effect.expires_ms: must be at least 1, got 0"),
        ("deny", {"suggest": {"a": {}}}, "effect.suggest.a: expected one operation, got none"),
        ("deny", {"suggest": {"a": {"remove": False}}}, "effect.suggest.a: expected one operation, got none"),
        ("deny", {"suggest": {"a": {"set": None, "remove": True}}}, "effect.suggest.a: expected one operation, got `set` and `remove`"),
        ("deny", {"suggest": {"a": {"clamp_min": 3, "clamp_max": 2}}}, "effect.suggest.a: `clamp_min` 3 is above `clamp_max` 2"),
        ("deny", {"suggest": {"a": {"set": [float("inf")]}}}, "effect.suggest.a.set.0: must be a finite number"),
        ("deny", {"suggest": {"a": {"one_of": [{"b": float("nan")}]}}}, "effect.suggest.a.one_of.0.b: must be a finite number"),
        ("budget", {"limit_calls": ...}, "effect.budget: needs `limit_calls` or `limit_cost_units`"),
        ("budget", {"limit_calls": -1}, "effect.budget.limit_calls: must be at least 0, got -1"),
        ("budget", {"limit_cost_units": -1}, "effect.budget.limit_cost_units: must be at least 0, got -1"),
        ("budget", {"cost_units_per_call": 0}, "effect.budget.cost_units_per_call: must be at least 1, got 0"),
        ("budget", {"limit_calls": MAX_AMOUNT + 1}, "effect.budget.limit_calls: must be at most 1000000000000"),
        ("rate_limit", {"capacity": 0}, "effect.rate_limit.capacity: must be at least 1, got 0"),
        ("rate_limit", {"refill_tokens": 0}, "effect.rate_limit.refill_tokens: must be at least 1, got 0"),
        ("rate_limit", {"refill_period_ms": 0}, "effect.rate_limit.refill_period_ms: must be at least 1, got 0"),
        ("rate_limit", {"cost_tokens_per_call": 0}, "effect.rate_limit.cost_tokens_per_call: must be at least 1, got 0"),
        ("rate_limit", {"backoff_ms": ...}, "effect.rate_limit: missing field `backoff_ms`"),
        ("rate_limit", {"backoff_ms": 0}, "effect.rate_limit.backoff_ms: must be at least 1, got 0"),
        ("breaker", {"repeat_window_ms": ...}, "effect.breaker.repeat_threshold: needs `repeat_window_ms` beside it"),
        ("breaker", {"repeat_threshold": ...}, "effect.breaker.repeat_window_ms: needs `repeat_threshold` beside it"),
        ("breaker", {"repeat_threshold": ..., "repeat_window_ms": ...}, "effect.breaker: would never trip"),
        ("breaker", {"error_threshold": 3}, "effect.breaker.error_threshold: needs `window_ms` beside it"),
        ("breaker", {"window_ms": 3}, "effect.breaker.window_ms: needs `error_threshold` beside it"),
        ("breaker", {"latency_threshold_ms": 3, "window_ms": 4}, "effect.breaker.latency_threshold_ms: needs `latency_count` beside it"),
        ("breaker", {"latency_count": 3}, "effect.breaker.latency_count: needs `latency_threshold_ms` and `window_ms` beside it"),
        ("breaker", {"repeat_threshold": 0}, "effect.breaker.repeat_threshold: must be at least 1, got 0"),
        ("dedupe", {"window_ms": 0}, "effect.dedupe.window_ms: must be at least 1, got 0"),
        ("dedupe", {"key": "custom"}, "effect.dedupe.key: this version compares calls by `args_hash` only"),
        ("dedupe", {"on_duplicate": "REPLAY"}, "effect.dedupe.on_duplicate: this version cannot answer from the record yet"),
        ("tag", {"add_risk_class": []}, "effect.tag.add_risk_class: an empty list tags nothing"),
        ("tag", {"add_risk_class": ["a", " "]}, "effect.tag.add_risk_class.1: must not be empty"),
        ("pin", {}, "kind: unknown rule kind `pin`: this version cannot watch tool definitions yet"),
    ],
)  # fmt: skip
def test_an_impossible_value_is_refused(kind, changes, message):
    assert told(kind, **changes) == [message]


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("deny", {"action": "REJECT_WITH_HINT"}),
        ("deny", {"require": "approval", "approver_role": "x", "expires_ms": 1}),
        ("allow", {"require": "human"}),
        ("deny", {"suggest": {"a": {"set": None}, "b": {"remove": True}, "c": {"clamp_max": 1}, "d": {"one_of": [None]}}}),
        ("budget", {"limit_calls": 0}),
        ("budget", {"limit_calls": ..., "limit_cost_units": 0}),
        ("rate_limit", {"on_limit": "BLOCK", "backoff_ms": ...}),
        ("breaker", {"error_threshold": 1, "window_ms": 1}),
        ("breaker", {"repeat_threshold": ..., "repeat_window_ms": ..., "latency_threshold_ms": 1, "latency_count": 1, "window_ms": 1}),
    ],
)  # fmt: skip
def test_an_edge_that_can_be_meant_is_taken(kind, changes):
    assert told(kind, **changes) == []
