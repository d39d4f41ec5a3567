"""Finds the changes of a rule's effect, and which of them loosen. Each field has a Rank."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    BreakerRule,
    BudgetRule,
    DedupeRule,
    DenyRule,
    KernelRule,
    RateLimitRule,
    SequenceRule,
    TaintRule,
)
from subluminal.contracts.vocabulary import ACTION_STRICTNESS, Action, Scope
from subluminal.policy.diff.changes import LOOSENS, TIGHTENS, Change, Rank, by_rank, quoted
from subluminal.policy.diff.taint import level_rank

_NONE = float("-inf")
_FINER: dict[Scope, frozenset[Scope]] = {
    Scope.RUN: frozenset({Scope.TOOL, Scope.SERVER_TOOL, Scope.AGENT, Scope.AGENT_TOOL}),
    Scope.TOOL: frozenset({Scope.SERVER_TOOL, Scope.AGENT_TOOL}),
    Scope.AGENT: frozenset({Scope.AGENT_TOOL}),
}
"""Scopes whose counters each count a part of what a counter of this scope counts."""


def _limit(value: Any) -> float:
    """Ranks a limit: a higher one is looser, and a missing one is loosest."""
    return _NONE if value is None else -value


def _amount(value: Any) -> float:
    """Ranks an amount: a lower one is looser, and a missing one is loosest."""
    return _NONE if value is None else value


def _action(value: Any) -> float:
    return ACTION_STRICTNESS[Action(value)]


def _within(value: Any) -> float:
    """Ranks a duration for which a rule remembers: a shorter one is looser. None never ends."""
    return float("inf") if value is None else value


def _count(value: Any) -> float:
    return float(value == "attempts")


def _given(value: Any) -> float:
    return float(value is not None)


def _not_given(value: Any) -> float:
    return float(value is None)


# A field that is not in a table changes what people read, not which calls pass.
_BUDGET: dict[str, Rank] = {
    "limit_calls": _limit,
    "limit_cost_units": _limit,
    "cost_units_per_call": _amount,
    "on_exceed": _action,
    "count": _count,
    "reset_ms": _within,
}
_RATE_LIMIT: dict[str, Rank] = {
    "capacity": _limit,
    "refill_rate": _limit,
    "cost_tokens_per_call": _amount,
    "on_limit": _action,
    "max_calls": _limit,
    "window_ms": _amount,
}
_BREAKER: dict[str, Rank] = {
    "error_threshold": _limit,
    "window_ms": _amount,
    "repeat_threshold": _limit,
    "repeat_window_ms": _amount,
    "latency_threshold_ms": _limit,
    "latency_count": _limit,
    "on_trip": _action,
}
_DEDUPE: dict[str, Rank] = {"window_ms": _amount, "on_duplicate": _action}
_SEQUENCE: dict[str, Rank] = {"within_ms": _within, "on_match": _action}
_TAINT: dict[str, Rank] = {"lower_to": level_rank}
_UNCLEAR = frozenset({"pack", "intent", "payload", "state", "fingerprint", "pattern"})
"""Fields of kernel and sequence rules: nobody can tell whether another value lets more pass."""
# Without `approver_role` anyone may approve: looser. A longer grant is looser. A deny that a person
# can lift is looser than other denies. An allow that needs a person is stricter than other allows.
_ALLOW: dict[str, Rank] = {"require": _given, "approver_role": _given, "expires_ms": _limit}
_DENY: dict[str, Rank] = {**_ALLOW, "action": _action, "require": _not_given}


def effect_changes(old: AnyRule, new: AnyRule) -> Iterator[Change]:
    """Compares two effects of the same kind, except tags, which `rules` compares."""
    prefix, ranks = _table(new)
    before, after = _fields(old), _fields(new)
    for name in before:
        was, now = before[name], after[name]
        if was == now:
            continue
        severity = LOOSENS if name in _UNCLEAR else by_rank(ranks.get(name), was, now)
        if name == "scope":  # a counter for fewer calls lets more calls pass
            severity = TIGHTENS if was in _FINER.get(now, frozenset()) else LOOSENS
        yield Change(
            kind="rule_modified",
            rule_id=new.rule_id,
            severity=severity,
            summary=f"{name} {_verb(was, now)}",
            field=f"{prefix}{name}",
            old=_plain(was),
            new=_plain(now),
        )


def _table(rule: AnyRule) -> tuple[str, dict[str, Rank]]:
    tables: dict[type, tuple[str, dict[str, Rank]]] = {
        AllowRule: ("effect.", _ALLOW),
        DenyRule: ("effect.", _DENY),
        BudgetRule: ("effect.budget.", _BUDGET),
        RateLimitRule: ("effect.rate_limit.", _RATE_LIMIT),
        BreakerRule: ("effect.breaker.", _BREAKER),
        DedupeRule: ("effect.dedupe.", _DEDUPE),
        SequenceRule: ("effect.sequence.", _SEQUENCE),
        TaintRule: ("effect.taint.", _TAINT),
        KernelRule: ("effect.kernel.", {}),
    }
    return tables[type(rule)]


def _fields(rule: AnyRule) -> dict[str, Any]:
    effect: Any = rule.effect
    if not isinstance(rule, AllowRule | DenyRule):
        effect = next(iter(msgspec.structs.astuple(effect)))
    fields: dict[str, Any] = msgspec.structs.asdict(effect)
    if isinstance(rule, RateLimitRule):
        # 10 tokens in 1,000 ms are the same as 1 token in 100 ms.
        tokens, period_ms = fields.pop("refill_tokens"), fields.pop("refill_period_ms")
        fields["refill_rate"] = None if tokens is None else Fraction(tokens, period_ms)
    return fields


def _verb(was: Any, now: Any) -> str:
    if was is None or was == {}:
        return f"added: {_told(now)}"
    if now is None or now == {}:
        return f"removed, was {_told(was)}"
    verb = "changed"
    if isinstance(was, int | Fraction) and isinstance(now, int | Fraction):
        verb = "raised" if now > was else "lowered"
    return f"{verb} from {_told(was)} to {_told(now)}"


def _told(value: Any) -> str:
    if isinstance(value, Fraction):
        return f"`{float(value * 1000):g}` tokens per second"
    return quoted(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    return msgspec.to_builtins(value)
