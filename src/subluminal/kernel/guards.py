"""Guards that most policies need, made from their parts.

Each factory takes `when(envelope, state)`, which says whether the guard has an opinion at all, and
returns a guard without a name: give it one with `named`.
"""

import math
import operator
from collections.abc import Callable, Collection
from typing import Any

from subluminal.contracts.vocabulary import Taint
from subluminal.errors import SubluminalError
from subluminal.kernel.basis import Basis, basis
from subluminal.kernel.decisions import (
    Decision,
    Defer,
    Escalate,
    EscalateTo,
    RequestConfirmation,
    Rewrite,
)
from subluminal.kernel.envelope import IntentEnvelope, with_payload
from subluminal.kernel.policies import Guard, unnamed
from subluminal.kernel.taint import is_tainted

When = Callable[[IntentEnvelope, Any], bool]
Number = int | float
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def _always(_envelope: IntentEnvelope, _state: Any) -> bool:
    return True


def threshold(
    *,
    value: Callable[[IntentEnvelope, Any], Number | None],
    limit: Number,
    decision: Decision | Callable[[IntentEnvelope, Any, Number], Decision],
    comparison: str = ">=",
    when: When = _always,
) -> Guard:
    """Makes a guard that decides once a number reaches a limit. None has not reached it."""
    if comparison not in _COMPARISONS:
        raise SubluminalError(f"`{comparison}` is not one of {', '.join(_COMPARISONS)}")
    reaches = _COMPARISONS[comparison]

    def guard(envelope: IntentEnvelope, state: Any) -> Decision | None:
        if not when(envelope, state):
            return None
        number = value(envelope, state)
        if number is None or not reaches(_finite(number), limit):
            return None
        return decision(envelope, state, number) if callable(decision) else decision

    return unnamed(guard)


def clamp(
    *,
    field: str,
    cap: Number | Callable[[IntentEnvelope, Any], Number | None],
    when: When = _always,
) -> Guard:
    """Makes a guard that rewrites a number of the payload above `cap` to `cap`.

    A field with a level of its own keeps it. A payload without the field is left to others.
    """

    def guard(envelope: IntentEnvelope, state: Any) -> Decision | None:
        if not when(envelope, state) or envelope.payload.get(field) is None:
            return None
        most = cap(envelope, state) if callable(cap) else cap
        found = envelope.payload[field]
        requested = _finite(found["value"] if is_tainted(found) else found)
        if most is None or requested <= _finite(most):
            return None
        capped = {**found, "value": most} if is_tainted(found) else most
        reason = basis(
            "business", "quantity_capped", field=field, requested=requested, cappedTo=most
        )
        rewritten = with_payload(envelope, {**envelope.payload, field: capped})
        return Rewrite(rewritten, f"{field} is capped at {most}", (reason,))

    return unnamed(guard)


def confirm(
    *, prompt: str | Callable[[IntentEnvelope, Any], str], when: When, because: Basis | None = None
) -> Guard:
    """Makes a guard that asks the user first."""
    reasons = (because or basis("business", "rule_satisfied"),)

    def guard(envelope: IntentEnvelope, state: Any) -> Decision | None:
        if not when(envelope, state):
            return None
        asked = prompt(envelope, state) if callable(prompt) else prompt
        return RequestConfirmation(asked, reasons)

    return unnamed(guard)


def escalate(
    *, to: EscalateTo | str, reason: str, when: When, because: Basis | None = None
) -> Guard:
    """Makes a guard that leaves the decision to a person or a supervisor."""
    said = Escalate(EscalateTo(to), reason, (because or basis("business", "rule_violated"),))

    def guard(envelope: IntentEnvelope, state: Any) -> Decision | None:
        return said if when(envelope, state) else None

    return unnamed(guard)


def state_defer(*, signal: str, timeout_ms: int, when: When, because: Basis | None = None) -> Guard:
    """Makes a guard that waits for a signal while the state is not ready."""
    said = Defer(signal, timeout_ms, (because or basis("state", "transition_valid"),))

    def guard(envelope: IntentEnvelope, state: Any) -> Decision | None:
        return said if when(envelope, state) else None

    return unnamed(guard)


class _SystemTaintPolicy:
    """Some kinds need TRUSTED."""

    def __init__(self, kinds: frozenset[str]) -> None:
        self._kinds = kinds

    def minimum_for(self, kind: str, /) -> Taint:
        return Taint.TRUSTED if kind in self._kinds else Taint.UNTRUSTED


def system_taint_policy(kinds: Collection[str]) -> _SystemTaintPolicy:
    """Makes a taint policy: these kinds need TRUSTED, all others UNTRUSTED."""
    return _SystemTaintPolicy(frozenset(kinds))


def _finite(number: Any) -> Number:
    """Returns a number. Raises for anything that a comparison would quietly let pass."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"a `{type(number).__name__}` is not a number")
    if not math.isfinite(number):
        raise ValueError(f"{number} has no place among the numbers")
    return number
