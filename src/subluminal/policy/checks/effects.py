"""What is wrong with a rule's effect, kind by kind (Pack 2.5 and the additive fields)."""

from collections.abc import Iterator
from typing import assert_never

from msgspec import UNSET

from subluminal.contracts.bundle import (
    AccessEffect,
    AllowRule,
    AnyRule,
    Breaker,
    BreakerRule,
    Budget,
    BudgetRule,
    Dedupe,
    DedupeRule,
    DenyRule,
    PinRule,
    RateLimit,
    RateLimitRule,
    Suggestion,
    Tag,
    TagRule,
)
from subluminal.contracts.shape import Misfit, Path
from subluminal.contracts.vocabulary import Action
from subluminal.policy.checks.matches import not_finite, range_misfits

MAX_AMOUNT = 10**12
"""Of every count and duration: 31 years in milliseconds, and in micro-tokens still 64 bits."""


def effect_misfits(rule: AnyRule) -> Iterator[Misfit]:
    """Returns what is wrong with an effect; paths begin at the rule."""
    match rule:
        case AllowRule() | DenyRule():
            yield from _access(rule.effect, isinstance(rule, AllowRule))
        case BudgetRule():
            yield from _budget(rule.effect.budget)
        case RateLimitRule():
            yield from _rate_limit(rule.effect.rate_limit)
        case BreakerRule():
            yield from _breaker(rule.effect.breaker)
        case DedupeRule():
            yield from _dedupe(rule.effect.dedupe)
        case TagRule():
            yield from _tag(rule.effect.tag)
        case PinRule():
            yield Misfit(
                ("kind",),
                "unknown rule kind `pin`: this version cannot watch tool definitions yet",
                "remove the rule; it would not protect anything",
            )
        case _:  # pragma: no cover
            assert_never(rule)


def _access(effect: AccessEffect, allows: bool) -> Iterator[Misfit]:
    path: Path = ("effect",)
    if allows != (effect.action == Action.ALLOW):
        wanted = "`ALLOW`" if allows else "`BLOCK` or `REJECT_WITH_HINT`"
        kind = "an allow" if allows else "a deny"
        hint = f"use {wanted}, or another kind"
        yield Misfit((*path, "action"), f"{kind} rule cannot {effect.action}", hint)
    if not effect.reason_code.strip():
        yield Misfit((*path, "reason_code"), "must not be empty")
    if allows and effect.suggest:
        yield Misfit((*path, "suggest"), "only a deny rule can suggest other arguments")
    for key, suggestion in effect.suggest.items():
        yield from _suggestion(suggestion, (*path, "suggest", key))
    yield from _amount(effect.expires_ms, 1, (*path, "expires_ms"))
    if effect.require is None:
        for name in ("approver_role", "expires_ms"):
            if getattr(effect, name) is not None:
                yield Misfit((*path, name), "means nothing without `require`")


def _suggestion(suggestion: Suggestion, path: Path) -> Iterator[Misfit]:
    clamps = suggestion.clamp_min is not None or suggestion.clamp_max is not None
    given = [
        name
        for name, is_given in (
            ("set", suggestion.set is not UNSET),
            ("remove", suggestion.remove),
            ("clamp_min/clamp_max", clamps),
            ("one_of", bool(suggestion.one_of)),
        )
        if is_given
    ]
    if len(given) != 1:
        told = " and ".join(f"`{name}`" for name in given) or "none"
        hint = "give exactly one of `set`, `remove: true`, `clamp_min`/`clamp_max`, `one_of`"
        yield Misfit(path, f"expected one operation, got {told}", hint)
    if clamps:
        names = ("clamp_min", "clamp_max")
        yield from range_misfits(suggestion.clamp_min, suggestion.clamp_max, names, path)
    yield from not_finite(suggestion.set, (*path, "set"))
    yield from not_finite(suggestion.one_of, (*path, "one_of"))


def _budget(budget: Budget) -> Iterator[Misfit]:
    path: Path = ("effect", "budget")
    if budget.limit_calls is None and budget.limit_cost_units is None:
        yield Misfit(path, "needs `limit_calls` or `limit_cost_units`")
    yield from _amount(budget.limit_calls, 0, (*path, "limit_calls"))
    yield from _amount(budget.limit_cost_units, 0, (*path, "limit_cost_units"))
    # A call that costs nothing would never meet its limit.
    yield from _amount(budget.cost_units_per_call, 1, (*path, "cost_units_per_call"))


def _rate_limit(limit: RateLimit) -> Iterator[Misfit]:
    path: Path = ("effect", "rate_limit")
    for name in ("capacity", "refill_tokens", "refill_period_ms", "cost_tokens_per_call"):
        yield from _amount(getattr(limit, name), 1, (*path, name))
    yield from _amount(limit.backoff_ms, 1, (*path, "backoff_ms"))
    if limit.on_limit == Action.THROTTLE and limit.backoff_ms is None:
        yield Misfit(path, "missing field `backoff_ms`", "`on_limit: THROTTLE` needs it")


_BREAKER_GROUPS = (
    ("error_threshold", "window_ms"),
    ("repeat_threshold", "repeat_window_ms"),
    ("latency_threshold_ms", "latency_count", "window_ms"),
)
_BREAKER_FIELDS = tuple(dict.fromkeys(name for group in _BREAKER_GROUPS for name in group))


def _breaker(breaker: Breaker) -> Iterator[Misfit]:
    path: Path = ("effect", "breaker")
    given = {name for name in _BREAKER_FIELDS if getattr(breaker, name) is not None}
    for name in _BREAKER_FIELDS:
        yield from _amount(getattr(breaker, name), 1, (*path, name))
    complete = [group for group in _BREAKER_GROUPS if given.issuperset(group)]
    halves = list(_half_groups(given))
    for name, missing in halves:
        told = " and ".join(f"`{each}`" for each in missing)
        yield Misfit((*path, name), f"needs {told} beside it")
    if not complete and not halves:
        hint = "give `error_threshold` and `window_ms`, or `repeat_threshold` and its window"
        yield Misfit(path, "would never trip", hint)


def _half_groups(given: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Fields that were begun, and what they lack. `window_ms` serves two groups."""
    for group in _BREAKER_GROUPS:
        own = [name for name in group if name != "window_ms" and name in given]
        missing = [name for name in group if name not in given]
        if own and missing:
            yield own[0], missing
    if "window_ms" in given and not given & {
        "error_threshold",
        "latency_threshold_ms",
        "latency_count",
    }:
        yield "window_ms", ["error_threshold"]


def _dedupe(dedupe: Dedupe) -> Iterator[Misfit]:
    path: Path = ("effect", "dedupe")
    yield from _amount(dedupe.window_ms, 1, (*path, "window_ms"))
    if dedupe.key != "args_hash":
        yield Misfit((*path, "key"), "this version compares calls by `args_hash` only")
    if dedupe.on_duplicate == "REPLAY":
        hint = "use `REJECT_WITH_HINT` until it can"
        message = "this version cannot answer from the record yet"
        yield Misfit((*path, "on_duplicate"), message, hint)


def _tag(tag: Tag) -> Iterator[Misfit]:
    path: Path = ("effect", "tag", "add_risk_class")
    if not tag.add_risk_class:
        yield Misfit(path, "an empty list tags nothing")
    for index, name in enumerate(tag.add_risk_class):
        if not name.strip():
            yield Misfit((*path, index), "must not be empty")


def _amount(value: int | None, least: int, path: Path) -> Iterator[Misfit]:
    if value is None:
        return
    if value < least:
        yield Misfit(path, f"must be at least {least}, got {value}")
    elif value > MAX_AMOUNT:
        yield Misfit(path, f"must be at most {MAX_AMOUNT}")
