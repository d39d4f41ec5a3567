"""Events in the order of ingest, from any position on: what live streams and `sub tail` read."""

from fnmatch import fnmatchcase
from typing import NamedTuple

import apsw
import msgspec
from msgspec import Struct

from subluminal.contracts.vocabulary import EventType
from subluminal.journal.chain import with_text
from subluminal.ledger.query.filters import CallFilter
from subluminal.ledger.store.segments import StoredSegment, after
from subluminal.ledger.store.timestamps import to_ms

MAX_EVENTS = 2_000
"""Events that one piece looks at, at most, give or take a segment."""


class _Call(Struct, frozen=True):
    call_id: str = ""
    server_name: str = ""
    tool_name: str = ""


class _Decision(Struct, frozen=True):
    action: str = ""
    rule_id: str | None = None


class _Peek(Struct, frozen=True):
    """As much of an event as filters look at."""

    type: str = ""
    ts: str = ""
    run_id: str = ""
    status: str = ""
    call: _Call = _Call()
    decision: _Decision = _Decision()


_peek = msgspec.json.Decoder(_Peek).decode


class Streamed(NamedTuple):
    """One event, and its position to go on from."""

    position: int
    line: bytes


class Piece(NamedTuple):
    """Events that passed, and how far the ledger was read."""

    events: list[Streamed]
    position: int


def read_events(connection: apsw.Connection, wanted: CallFilter, position: int) -> Piece:
    """The next events after a position that pass a filter. Equal positions: there is no more."""
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
    """The position of the newest event."""
    row = connection.execute(
        "SELECT first_pos + last_n - first_n FROM segments ORDER BY first_pos DESC LIMIT 1"
    ).fetchone()
    return 0 if row is None else int(row[0])


def _passing(
    connection: apsw.Connection, segment: StoredSegment, wanted: CallFilter, position: int
) -> list[Streamed]:
    found = []
    for number, line in enumerate(segment.lines(), start=segment.first_pos):
        if number > position:
            event = _peek(line)
            if passes(event, wanted):
                found.append(Streamed(number, _whole(connection, segment.shim, event, line)))
    return found


def passes(event: _Peek, wanted: CallFilter) -> bool:
    """Whether an event is wanted. One that lacks what is asked about is not."""
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
    at = to_ms(event.ts)
    return at >= (wanted.since_ms or 0) and (wanted.until_ms is None or at < wanted.until_ms)


def _whole(connection: apsw.Connection, shim: int, event: _Peek, line: bytes) -> bytes:
    """The event as its shim wrote it, if its preview text was not dropped."""
    column = {
        EventType.TOOL_CALL_START: "args_preview",
        EventType.TOOL_CALL_END: "result_preview",
    }.get(event.type)  # type: ignore[call-overload]  # a type of the future has none
    if column is None or b'"%b"' % column.encode() in line:
        return line
    row = connection.execute(
        f"SELECT p.{column} FROM tool_calls c JOIN previews p USING (id) "
        "WHERE c.call_id = ? AND c.shim = ? ORDER BY c.id DESC LIMIT 1",
        (event.call.call_id, shim),
    ).fetchone()
    if row is None or row[0] is None:
        return line
    return with_text(line, msgspec.json.encode(row[0]))
