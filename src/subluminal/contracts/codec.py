"""Bytes to contracts and back: events tolerantly, bundles strictly (Pack 0.2)."""

from typing import Any

import msgspec

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.events import EVENTS, AnyEvent, Event

encode_event = msgspec.json.Encoder().encode

_decode_known = msgspec.json.Decoder(AnyEvent).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode
NO_EVENT = (ValueError, RecursionError, OverflowError)
"""What reading a line may raise: msgspec raises ValueErrors, but not for too deep a nesting."""

_KNOWN_TYPES = frozenset(str(event.__struct_config__.tag) for event in EVENTS)


def decode_event(line: bytes) -> Event | None:
    """Reads one event; None for a type from the future.

    Raises one of NO_EVENT on a line that is not an event at all.
    """
    try:
        event: Event = _decode_known(line)
        return event
    except msgspec.ValidationError:
        kind = _decode_any(line).get("type")
        if isinstance(kind, str) and kind not in _KNOWN_TYPES:
            return None
        raise


def bundle_of(value: Any) -> Bundle:
    """Converts plain data into a bundle. Raises msgspec.ValidationError at the first misfit."""
    return msgspec.convert(value, Bundle)
