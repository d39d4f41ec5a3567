"""Stored events, whole again: in the order of ingest from any position, or all of one run.

Live streams and `sub tail` read the first, exports the second. Events are stored in their chained
form, without preview texts; a preview that is still kept is put back.
"""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

import apsw
import msgspec
from msgspec import Struct

from subluminal.contracts.codec import NO_EVENT
from subluminal.contracts.vocabulary import EventType
from subluminal.journal.chain import with_text
from subluminal.ledger.query.questions import CallFilter
from subluminal.ledger.store.segments import StoredSegment, after, of_shim
from subluminal.timestamps import parse_rfc3339

MAX_EVENTS = 2_000
"""Events that one piece examines. The last segment is always finished, so it may be a few more."""

ShimLines = Callable[[], Iterator[bytes]]
"""Reads the lines of one shim from the first on. May be called repeatedly."""


class _Call(Struct, frozen=True):
    call_id: str = ""
    server_name: str = ""
    tool_name: str = ""


class _Decision(Struct, frozen=True):
    action: str = ""
    rule_id: str | None = None


class _Peek(Struct, frozen=True):
    """The fields of an event that filters and previews need."""

    type: str = ""
    ts: str = ""
    run_id: str = ""
    status: str = ""
    call: _Call = _Call()
    decision: _Decision = _Decision()


class _Envelope(Struct, frozen=True):
    """The fields of any event, whatever version wrote it."""

    type: str = ""
    ts: str = ""
    run_id: str = ""


_decode_peek = msgspec.json.Decoder(_Peek).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_PREVIEW_COLUMNS: dict[str, str] = {
    EventType.TOOL_CALL_START: "args_preview",
    EventType.TOOL_CALL_END: "result_preview",
}


def _peek(line: bytes) -> _Peek:
    try:
        return _decode_peek(line)
    except msgspec.ValidationError:
        # A newer version wrote it: its other fields have another shape.
        envelope = _decode_envelope(line)
        return _Peek(envelope.type, envelope.ts, envelope.run_id)


def decode_stored(line: bytes) -> Any | None:
    """Decodes a stored event; None if it has a number or a depth that no parser here takes.

    Fields that ingest does not know are stored unread.
    """
    try:
        return msgspec.json.decode(line)
    except NO_EVENT:
        return None


class Streamed(NamedTuple):
    """One event, and the position to resume from."""

    position: int
    line: bytes


class Piece(NamedTuple):
    """Events that pass a filter, and the position up to which the ledger was read."""

    events: list[Streamed]
    position: int


def read_events(connection: apsw.Connection, wanted: CallFilter, position: int) -> Piece:
    """Reads the events after a position. The end is reached when the position stays the same."""
    events: list[Streamed] = []
    looked_at = 0
    for segment in after(connection, position):
        last = segment.first_pos + segment.last_n - segment.first_n
        if last <= position:
            continue
        events += _passing(connection, segment, wanted, position)
        looked_at += last - max(position, segment.first_pos - 1)
        position = last
        if looked_at >= MAX_EVENTS:
            break
    return Piece(events, position)


def last_position(connection: apsw.Connection) -> int:
    """The position of the newest event; 0 if there is none."""
    row = connection.execute(
        "SELECT first_pos + last_n - first_n FROM segments ORDER BY first_pos DESC LIMIT 1"
    ).fetchone()
    return 0 if row is None else int(row[0])


def stored_lines_by_shim(connection: apsw.Connection, run_id: str) -> list[ShimLines]:
    """The lines of a run, by shim. They have no newline; dropped events are left out."""
    rows = connection.execute("SELECT id FROM shims WHERE run_id = ? ORDER BY id", (run_id,))
    return [partial(_lines_of_shim, connection, shim) for (shim,) in list(rows)]


def _lines_of_shim(connection: apsw.Connection, shim: int) -> Iterator[bytes]:
    for segment in of_shim(connection, shim):
        for line in segment.lines():
            yield _whole(connection, shim, _peek(line), line)


def _passing(
    connection: apsw.Connection, segment: StoredSegment, wanted: CallFilter, position: int
) -> list[Streamed]:
    found = []
    for number, line in enumerate(segment.lines(), start=segment.first_pos):
        if number > position:
            event = _peek(line)
            if _passes(event, wanted):
                found.append(Streamed(number, _whole(connection, segment.shim, event, line)))
    return found


def _passes(event: _Peek, wanted: CallFilter) -> bool:
    """Whether an event matches. If it lacks a field, it fails every filter on that field."""
    for value, pattern in (
        (event.call.server_name, wanted.server),
        (event.call.tool_name, wanted.tool),
    ):
        if pattern is not None and not fnmatchcase(value, pattern):
            return False
    for found, exact in (
        (event.run_id, wanted.run),
        (event.decision.action, wanted.decision),
        (event.decision.rule_id, wanted.rule),
        (event.status, wanted.status),
    ):
        if exact is not None and found != exact:
            return False
    return _in_time(event, wanted)


def _in_time(event: _Peek, wanted: CallFilter) -> bool:
    if wanted.since_ms is None and wanted.until_ms is None:
        return True
    at = parse_rfc3339(event.ts)
    return at >= (wanted.since_ms or 0) and (wanted.until_ms is None or at < wanted.until_ms)


def _whole(connection: apsw.Connection, shim: int, event: _Peek, line: bytes) -> bytes:
    """The event as its shim wrote it; without its preview text if retention dropped that."""
    column = _PREVIEW_COLUMNS.get(event.type)
    if column is None or b'"%b"' % column.encode() in line:
        return line
    row = connection.execute(
        f"SELECT p.{column} FROM tool_calls c JOIN previews p USING (id) "
        "WHERE c.call_id = ?1 AND ?2 IN (c.shim, c.end_shim) ORDER BY c.id DESC LIMIT 1",
        (event.call.call_id, shim),
    ).fetchone()
    if row is None or row[0] is None:
        return line
    return with_text(line, msgspec.json.encode(row[0]))
