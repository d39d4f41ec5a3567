"""Members of payloads and states, which may be anything that JSON has."""

from collections.abc import Mapping
from typing import Any

from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.taint import is_tainted


def member(envelope: IntentEnvelope, name: str) -> Any:
    """Returns a member of the payload, without the level that it may have; None if it is absent."""
    payload = envelope.payload
    found: Any = payload.get(name) if isinstance(payload, Mapping) else None
    return found["value"] if is_tainted(found) else found


def replaced(envelope: IntentEnvelope, name: str, value: Any) -> dict[str, Any]:
    """Returns the payload with another value of a member, which keeps its level."""
    found = envelope.payload.get(name)
    return {**envelope.payload, name: {**found, "value": value} if is_tainted(found) else value}


def texts(state: Any, name: str) -> tuple[str, ...]:
    """Returns a list of strings of the state; empty if it is absent. Raises TypeError for others.

    A guard that raises is a refusal, so a state of the wrong shape lets nothing pass.
    """
    found = state.get(name)
    if found is None:
        return ()
    is_list = isinstance(found, list | tuple | set | frozenset)
    if not is_list or not all(isinstance(text, str) for text in found):
        raise TypeError(f"`{name}` of the state is not a list of strings")
    return tuple(found)
