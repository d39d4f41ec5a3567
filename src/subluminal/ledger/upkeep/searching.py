"""Fills the full-text index behind the ingest: nobody waits for it, and it never waits for anyone.

Calls are indexed once they have ended, in order. One that takes long is indexed as it is, and again
when its result comes.
"""

from typing import Any

import apsw

from subluminal.ledger.store.counting import SEARCH_DONE, reach_counter, read_counter

BATCH = 1_000
PATIENCE_MS = 30_000
PATIENCE_CALLS = 5_000
"""A call without an end holds up the index no longer than this, nor more later calls than this."""

_NEXT = (
    "SELECT c.id, c.status IS NOT NULL OR c.created_at < ? OR c.id < ?, "
    "p.args_preview, p.result_preview FROM tool_calls c LEFT JOIN previews p USING (id) "
    "WHERE c.id > ? ORDER BY c.id LIMIT ?"
)
_AGAIN = (
    "SELECT a.id, 1, p.args_preview, p.result_preview FROM search_again a "
    "LEFT JOIN previews p USING (id) LIMIT ?"
)
_PUT = "INSERT OR REPLACE INTO search (rowid, args, result) VALUES (?, ?, ?)"


def index_some(connection: apsw.Connection, now_ms: int) -> bool:
    """Indexes one batch of calls. Whether there may be more."""
    done = read_counter(connection, SEARCH_DONE)
    patience = (now_ms - PATIENCE_MS, _newest(connection) - PATIENCE_CALLS)
    rows = connection.execute(_NEXT, (*patience, done, BATCH)).fetchall()
    ready: list[tuple[Any, ...]] = []
    for number, is_ready, args, result in rows:
        if not is_ready:
            break
        ready.append((number, args, result))
    again = [(number, args, result) for number, _, args, result in _again(connection)]
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
    return len(ready) == BATCH or len(again) == BATCH


def _again(connection: apsw.Connection) -> list[tuple[object, ...]]:
    return connection.execute(_AGAIN, (BATCH,)).fetchall()


def behind(connection: apsw.Connection) -> int:
    """How many calls the index does not know yet."""
    return max(0, _newest(connection) - read_counter(connection, SEARCH_DONE))


def _newest(connection: apsw.Connection) -> int:
    row = connection.execute("SELECT ifnull(max(id), 0) FROM tool_calls").fetchone()
    return int(row[0]) if row else 0
