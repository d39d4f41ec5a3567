"""The numbers of a limit, and those that a promoted hint proposes."""

import pytest
from tests.policy.bundles import bundle, rule

from subluminal.errors import SubluminalError, UsageError
from subluminal.policy.raising import chosen, limit_kind, numbers_of, raised

WINDOWS = {"window_ms": 9, "error_threshold": 3, "latency_threshold_ms": 5, "latency_count": 7}


SLIDING = {
    "capacity": ...,
    "refill_tokens": ...,
    "refill_period_ms": ...,
    "max_calls": 2,
    "window_ms": 9,
}


def only(*args, **changes):
    (each,) = bundle(rule(*args, **changes)).rules
    return each


@pytest.mark.parametrize(
    ("made", "cause", "numbers"),
    [
        (only("budget"), None, {"limit_calls": 20}),
        (only("budget", limit_calls=0), None, {"limit_calls": 1}),
        (only("budget", limit_cost_units=7), None, {"limit_calls": 20, "limit_cost_units": 14}),
        (only("rate_limit", capacity=3), None, {"capacity": 6, "refill_tokens": 20}),
        (only("breaker"), "repeats", {"repeat_threshold": 10}),
        (only("breaker", **WINDOWS), "errors", {"error_threshold": 6}),
        (only("breaker", **WINDOWS), "latency", {"latency_count": 14}),
        (
            only("breaker", **WINDOWS),
            "unheard of",
            {"error_threshold": 6, "repeat_threshold": 10, "latency_count": 14},
        ),
        (only("dedupe"), None, {"window_ms": 500}),
        (only("sequence", within_ms=9), None, {"within_ms": 4}),
        (
            only("rate_limit", **SLIDING),
            None,
            {"max_calls": 4},
        ),
    ],
)
def test_a_limit_is_raised_to_twice_the_calls_or_half_the_window(made, cause, numbers):
    assert raised(made, cause) == numbers


def test_a_sequence_that_holds_at_any_time_has_no_number():
    assert limit_kind("SEQUENCE_MATCHED") == "sequence"
    with pytest.raises(SubluminalError, match="forbids its pattern at any time"):
        raised(only("sequence"), None)


def test_a_window_of_one_millisecond_cannot_be_halved():
    with pytest.raises(SubluminalError, match="cannot be shorter than 1 ms"):
        raised(only("dedupe", window_ms=1), None)


def test_only_numbers_that_the_limit_has_can_be_chosen():
    made = only("budget")
    assert numbers_of(made) == {"limit_calls": 10}
    assert chosen(made, {"limit_calls": 99}) == {"limit_calls": 99}
    with pytest.raises(UsageError, match="rule `budget` has no number `limit_cals`") as refused:
        chosen(made, {"limit_cals": 99})
    assert refused.value.hint == "did you mean `limit_calls`?"


def test_a_reason_tells_whether_a_limit_refused():
    assert limit_kind("BUDGET_EXCEEDED") == "budget"
    assert [limit_kind(code) for code in ("NO_WRITES", "APPROVAL_REQUIRED", None)] == [None] * 3
