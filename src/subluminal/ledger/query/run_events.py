"""Every event of one run, as its shims wrote them: each shim's in order, all of them by time."""

import heapq
from collections.abc import Iterator

import apsw
import msgspec

from subluminal.contracts.vocabulary import EventType
from subluminal.journal.chain import with_text
from subluminal.ledger.segments import of_shim


class _Call(msgspec.Struct, frozen=True):
    call_id: str = ""


class _Peek(msgspec.Struct, frozen=True):
    type: str = ""
    ts: str = ""
    call: _Call = _Call()


_peek = msgspec.json.Decoder(_Peek).decode
_COLUMNS: dict[str, str] = {
    EventType.TOOL_CALL_START: "args_preview",
    EventType.TOOL_CALL_END: "result_preview",
}


def run_events(connection: apsw.Connection, run_id: str) -> Iterator[bytes]:
    """Lines without their newline; what retention dropped is left out."""
    rows = connection.execute("SELECT id FROM shims WHERE run_id = ? ORDER BY id", (run_id,))
    roads = [_of_shim(connection, shim) for (shim,) in list(rows)]
    for _, line in heapq.merge(*roads, key=lambda timed: timed[0]):
        yield line


def _of_shim(connection: apsw.Connection, shim: int) -> Iterator[tuple[str, bytes]]:
    for segment in of_shim(connection, shim):
        for line in segment.lines():
            event = _peek(line)
            yield event.ts, _whole(connection, shim, event, line)


def _whole(connection: apsw.Connection, shim: int, event: _Peek, line: bytes) -> bytes:
    """The line with its preview text, where that was kept."""
    column = _COLUMNS.get(event.type)
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
