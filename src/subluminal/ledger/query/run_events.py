"""Every event of one run, as its shims wrote them: a road for each shim, in order."""

from collections.abc import Callable, Iterator
from functools import partial

import apsw
import msgspec

from subluminal.contracts.vocabulary import EventType
from subluminal.journal.chain import with_text
from subluminal.ledger.store.segments import of_shim


class _Call(msgspec.Struct, frozen=True):
    call_id: str = ""


class _Peek(msgspec.Struct, frozen=True):
    type: str = ""
    call: _Call = _Call()


_peek = msgspec.json.Decoder(_Peek).decode
_COLUMNS: dict[str, str] = {
    EventType.TOOL_CALL_START: "args_preview",
    EventType.TOOL_CALL_END: "result_preview",
}


Road = Callable[[], Iterator[bytes]]
"""One shim's lines from the first on, as often as it is asked."""


def run_roads(connection: apsw.Connection, run_id: str) -> list[Road]:
    """Lines without their newline; what retention dropped is left out."""
    rows = connection.execute("SELECT id FROM shims WHERE run_id = ? ORDER BY id", (run_id,))
    return [partial(_of_shim, connection, shim) for (shim,) in list(rows)]


def _of_shim(connection: apsw.Connection, shim: int) -> Iterator[bytes]:
    for segment in of_shim(connection, shim):
        for line in segment.lines():
            yield _whole(connection, shim, _peek(line), line)


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
