"""The numbers of a limit that decide when it refuses, and larger ones (spec 001, section 10).

A limit is a budget, rate limit, breaker, dedupe or sequence rule. An allow does not shield from it,
so a person who finds it too strict changes its numbers. Pure.
"""

from collections.abc import Mapping

from msgspec import Struct

from subluminal.contracts.bundle import (
    BREAKER_NUMBERS,
    BreakerRule,
    BudgetRule,
    DedupeRule,
    RateLimitRule,
    SequenceRule,
)
from subluminal.contracts.shape import did_you_mean
from subluminal.contracts.vocabulary import ReasonCode, RuleKind
from subluminal.errors import SubluminalError, UsageError

LimitRule = BudgetRule | RateLimitRule | BreakerRule | DedupeRule | SequenceRule

_KINDS = {
    ReasonCode.BUDGET_EXCEEDED: RuleKind.BUDGET,
    ReasonCode.RATE_LIMITED: RuleKind.RATE_LIMIT,
    ReasonCode.BREAKER_TRIPPED: RuleKind.BREAKER,
    ReasonCode.DEDUPE_DUPLICATE: RuleKind.DEDUPE,
    ReasonCode.SEQUENCE_MATCHED: RuleKind.SEQUENCE,
}
"""The kind of the limit that gives a reason. Other reasons are those of allow and deny rules."""
_NUMBERS = {
    RuleKind.BUDGET: ("limit_calls", "limit_cost_units"),
    RuleKind.RATE_LIMIT: (
        *("capacity", "refill_tokens", "refill_period_ms"),
        *("max_calls", "window_ms"),
    ),
    RuleKind.BREAKER: BREAKER_NUMBERS,
    RuleKind.DEDUPE: ("window_ms",),
    RuleKind.SEQUENCE: ("within_ms",),
}
_DOUBLED = {
    RuleKind.BUDGET: ("limit_calls", "limit_cost_units"),
    RuleKind.RATE_LIMIT: ("capacity", "refill_tokens", "max_calls"),
}
_CAUSES = {"errors": "error_threshold", "repeats": "repeat_threshold", "latency": "latency_count"}


def limit_kind(reason_code: str | None) -> RuleKind | None:
    """Returns the kind of the limit that refused for this reason; None if no limit did."""
    return next((kind for reason, kind in _KINDS.items() if reason == reason_code), None)


def kind_of(rule: LimitRule) -> RuleKind:
    """Returns the kind of a limit."""
    return RuleKind(str(rule.__struct_config__.tag))


def numbers_of(rule: LimitRule) -> dict[str, int]:
    """Returns the numbers of a limit that its author has given."""
    effect: Struct = getattr(rule.effect, kind_of(rule).value)
    given = {name: getattr(effect, name) for name in _NUMBERS[kind_of(rule)]}
    return {name: number for name, number in given.items() if number is not None}


def raised(rule: LimitRule, cause: str | None) -> dict[str, int]:
    """Returns numbers under which a limit refuses later: twice the calls, or half the window.

    `cause` is the window that tripped a breaker, if it is known. Raises SubluminalError.
    """
    given = numbers_of(rule)
    if isinstance(rule, DedupeRule | SequenceRule):
        return _shorter(rule, given)
    if isinstance(rule, BreakerRule):
        names = [_CAUSES[cause]] if cause in _CAUSES else list(_CAUSES.values())
    else:
        names = list(_DOUBLED[kind_of(rule)])
    return {name: max(1, 2 * given[name]) for name in names if name in given}


def _shorter(rule: DedupeRule | SequenceRule, given: dict[str, int]) -> dict[str, int]:
    if not given:
        raise SubluminalError(
            f"rule `{rule.rule_id}` forbids its pattern at any time: it has no number to change",
            hint="let this call pass with `sub promote --session`, give the rule `within_ms`, or"
            " narrow its match",
        )
    ((name, window_ms),) = given.items()
    if window_ms == 1:
        raise SubluminalError(
            f"the window of rule `{rule.rule_id}` cannot be shorter than 1 ms",
            hint="disable the rule, or narrow its match",
        )
    return {name: window_ms // 2}


def chosen(rule: LimitRule, wanted: Mapping[str, int]) -> dict[str, int]:
    """Returns the numbers that a person chose, if the limit has them. Raises UsageError."""
    given = numbers_of(rule)
    for name in wanted:
        if name not in given:
            raise UsageError(
                f"rule `{rule.rule_id}` has no number `{name}`", hint=did_you_mean(name, given)
            )
    return dict(wanted)
