"""Policies as code: guards in three phases, a taint policy, and a default.

A guard takes an envelope and the state, and returns a Decision, or None if it has no opinion.
Guards are pure. The kernel asks them in order and takes the first opinion.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from subluminal.errors import SubluminalError
from subluminal.kernel.decisions import Decision
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.taint import TaintPolicy

Guard = Callable[[IntentEnvelope, Any], Decision | None]
_Named = TypeVar("_Named", bound=Callable[..., Any])
_NAME = "__guard_name__"


class PolicyBundle(Struct, frozen=True):
    """What a pack allows. `default` is EXECUTE or REFUSE; any other word refuses too."""

    state_guards: Sequence[Guard]
    """whether the state allows the intent at all"""
    auth_guards: Sequence[Guard]
    """who may propose it; asked after the taint gate"""
    taint: TaintPolicy
    business: Sequence[Guard]
    """the rules of the domain"""
    default: str


def named(name: str, guard: _Named) -> _Named:
    """Gives a guard the name that traces and records show. Returns the same guard.

    A guard keeps its first name: another one raises SubluminalError. So does an object that takes
    no attributes, such as a bound method: wrap it in a function.
    """
    if not name:
        raise SubluminalError("a guard's name is empty")
    known = getattr(guard, _NAME, name)
    if known != name:
        raise SubluminalError(f"the guard is already named `{known}`, so not `{name}`")
    try:
        setattr(guard, _NAME, name)
    except (AttributeError, TypeError):
        raise SubluminalError(
            f"a `{type(guard).__name__}` cannot be named", hint="wrap it in a function or a lambda"
        ) from None
    return guard


def unnamed(guard: Guard) -> Guard:
    """Takes the name of a function off the guard that it makes: it says nothing about the guard."""
    guard.__name__ = "<lambda>"
    return guard


def guard_name(guard: Any) -> str | None:
    """Returns the name of a guard: the given one, else that of its function, else None."""
    for attribute in (_NAME, "__name__"):
        try:
            name = getattr(guard, attribute, None)
        except Exception:  # noqa: BLE001 - a guard may be any object, also one that has no names
            return None
        if type(name) is str and name.isprintable() and name not in ("", "<lambda>"):
            return name
    return None


def first_match(*guards: Guard) -> Guard:
    """Makes one guard of several: the first opinion counts."""

    def asked_in_turn(envelope: IntentEnvelope, state: Any) -> Decision | None:
        for guard in guards:
            decision = guard(envelope, state)
            if decision is not None:
                return decision
        return None

    return named(_joined(guards), asked_in_turn)


all_of = first_match
"""The same: a guard that has no objection has no opinion."""


def constant(decision: Decision | None) -> Guard:
    """Makes a guard that always says the same."""

    def unconditional(_envelope: IntentEnvelope, _state: Any) -> Decision | None:
        return decision

    return unnamed(unconditional)


def _joined(guards: Sequence[Guard]) -> str:
    names = [guard_name(guard) or "unnamed" for guard in guards]
    return names[0] if len(names) == 1 else f"first_match({', '.join(names)})"
