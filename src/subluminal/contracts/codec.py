"""Reads events from JSON. Unknown fields and unknown types are tolerated (Pack 0.2)."""

from typing import Any

import msgspec

from subluminal.contracts.events import EVENTS, AnyEvent, Event

_decode_known = msgspec.json.Decoder(AnyEvent).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode
NO_EVENT = (ValueError, RecursionError, OverflowError)
"""What `decode_event` may raise. Most of msgspec's errors are ValueErrors; too deep a nesting is a
RecursionError."""

_KNOWN_TYPES = frozenset(str(event.__struct_config__.tag) for event in EVENTS)


def decode_event(line: bytes) -> Event | None:
    """Reads one event; None if a newer version made its type.

    Raises one of NO_EVENT if the line is not an event.
    """
    try:
        event: Event = _decode_known(line)
        return event
    except msgspec.ValidationError:
        kind = _decode_any(line).get("type")
        if isinstance(kind, str) and kind not in _KNOWN_TYPES:
            return None
        raise
