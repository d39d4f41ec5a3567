"""Reads events from JSON, tolerantly (Pack 0.2).

Unknown fields are ignored. Unknown words in a closed vocabulary stay strings. Unknown types, and
events of a newer MAJOR version, are recognised but not read.
"""

from functools import cache, reduce
from operator import or_

import msgspec
from msgspec import Struct

from subluminal.contracts.events import EVENTS, AnyEvent, Event
from subluminal.contracts.tolerance import tolerant
from subluminal.contracts.versions import is_newer_major

_decode_known = msgspec.json.Decoder(AnyEvent).decode
NO_EVENT = (ValueError, RecursionError, OverflowError)
"""What `decode_event` may raise. Most of msgspec's errors are ValueErrors; too deep a nesting is a
RecursionError."""

_KNOWN_TYPES = frozenset(str(event.__struct_config__.tag) for event in EVENTS)


class _Kind(Struct, frozen=True):
    type: str
    v: str = ""


_decode_kind = msgspec.json.Decoder(_Kind).decode


def decode_event(line: bytes) -> Event | None:
    """Reads one event; None if a newer version made its type, or if its MAJOR version is newer.

    Raises one of NO_EVENT if the line is not an event.
    """
    try:
        event: Event = _decode_known(line)
    except msgspec.ValidationError:
        kind = _decode_kind(line)
        if kind.type not in _KNOWN_TYPES or is_newer_major(kind.v):
            return None
        event = _tolerant_decoder().decode(line)
    return None if is_newer_major(event.v) else event


@cache
def _tolerant_decoder() -> "msgspec.json.Decoder[Event]":
    return msgspec.json.Decoder(reduce(or_, map(tolerant, EVENTS)))
