"""Work that ingest leaves for later: filling the full-text index, and packing stored events.

Calls are indexed in order, once they have ended. A call that takes long is indexed without its
result, and again when the result arrives.
"""

from typing import Any

import apsw

from subluminal.ledger.store.counting import SEARCH_DONE, reach_counter, read_counter
from subluminal.ledger.store.segments import DEFLATED, RAW, pack

INDEX_BATCH = 1_000
PACK_BATCH = 64
PATIENCE_MS = 30_000
PATIENCE_CALLS = 5_000
"""A call without an end holds up the index for at most this time, and at most this many calls."""

_NEXT = (
    "SELECT c.id, c.status IS NOT NULL OR c.created_at < ? OR c.id < ?, "
    "p.args_preview, p.result_preview FROM tool_calls c LEFT JOIN previews p USING (id) "
    "WHERE c.id > ? ORDER BY c.id LIMIT ?"
)
_AGAIN = (
    "SELECT a.id, p.args_preview, p.result_preview FROM search_again a "
    "LEFT JOIN previews p USING (id) LIMIT ?"
)
_PUT = "INSERT OR REPLACE INTO search (rowid, args, result) VALUES (?, ?, ?)"
_UNPACKED = (
    f"SELECT id, lines FROM segments WHERE codec = {RAW} AND lines IS NOT NULL ORDER BY id LIMIT ?"
)


def index_some(connection: apsw.Connection, now_ms: int) -> bool:
    """Indexes one batch of calls. Returns whether there may be more."""
    done = read_counter(connection, SEARCH_DONE)
    patience = (now_ms - PATIENCE_MS, _newest(connection) - PATIENCE_CALLS)
    rows = connection.execute(_NEXT, (*patience, done, INDEX_BATCH)).fetchall()
    ready: list[tuple[Any, ...]] = []
    for number, is_ready, args, result in rows:
        if not is_ready:
            break
        ready.append((number, args, result))
    again: list[tuple[Any, ...]] = connection.execute(_AGAIN, (INDEX_BATCH,)).fetchall()
    if not ready and not again:
        return False
    with connection:
        connection.executemany(_PUT, again)
        connection.executemany(
            "DELETE FROM search_again WHERE id = ?", [(number,) for number, _, _ in again]
        )
        connection.executemany(_PUT, [row for row in ready if row[1] or row[2]])
        if ready:
            reach_counter(connection, SEARCH_DONE, ready[-1][0])
    return len(ready) == INDEX_BATCH or len(again) == INDEX_BATCH


def calls_not_indexed(connection: apsw.Connection) -> int:
    """How many calls are not in the index yet."""
    return max(0, _newest(connection) - read_counter(connection, SEARCH_DONE))


def pack_some(connection: apsw.Connection) -> bool:
    """Packs one batch of segments. Returns whether there may be more."""
    rows = list(connection.execute(_UNPACKED, (PACK_BATCH,)))
    if not rows:
        return False
    with connection:
        connection.executemany(
            "UPDATE segments SET codec = ?, lines = ? WHERE id = ?",
            [(DEFLATED, pack(lines), number) for number, lines in rows],
        )
    return len(rows) == PACK_BATCH


def _newest(connection: apsw.Connection) -> int:
    row = connection.execute("SELECT ifnull(max(id), 0) FROM tool_calls").fetchone()
    return int(row[0]) if row else 0
