"""Counts that the ledger keeps, because counting rows would be slow, or the rows are gone.

Counters are single numbers by name. Rollups count calls by minute, tool and result; totals are the
same without the minute. Facets, histograms and query planning read them instead of scanning calls.
Every function writes within the caller's transaction.
"""

from collections import Counter
from collections.abc import Iterable

import apsw

from subluminal.ledger.ingest.batch import Batch
from subluminal.ledger.ingest.rows import BUCKET_MS, RollupKey, rollup_key

EVENTS_TOTAL = "events_total"
PREVIEWS_DROPPED = "previews_dropped"
QUARANTINED = "quarantined"
"""damaged lines that were ever found"""
QUARANTINED_BYTES = "quarantined_bytes"
NEWER_EVENTS = "newer_events"
"""events of a newer MAJOR version, which this version stores and does not read"""
SEARCH_DONE = "search_done"
"""row id of the last call in the full-text index"""
LAST_FORGOTTEN = "last_forgotten"
"""highest row id of a call that retention dropped"""

_ADD = (
    "INSERT INTO counters (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"
)
_REACH = (
    "INSERT INTO counters (name, value) VALUES (?, ?) "
    "ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)"
)
_LAST_CALL_ID = (
    "SELECT max(ifnull((SELECT max(id) FROM tool_calls), 0), "
    "ifnull((SELECT max(value) FROM counters WHERE name IN (?, ?)), 0))"
)
_KEYS = "server_name, tool_name, decision, status, rule_id"
_ROLLUP = (
    f"INSERT INTO rollups (bucket, {_KEYS}, calls) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET calls = calls + excluded.calls"
)
_TOTAL = (
    f"INSERT INTO totals ({_KEYS}, calls) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET calls = calls + excluded.calls"
)
_IS_KEY = "server_name = ? AND tool_name = ? AND decision = ? AND status = ? AND rule_id = ?"
_EMPTY_ROLLUP = f"DELETE FROM rollups WHERE bucket = ? AND {_IS_KEY} AND calls = 0"
_EMPTY_TOTAL = f"DELETE FROM totals WHERE {_IS_KEY} AND calls = 0"
_SPAN = (
    "INSERT INTO buckets (bucket, first_id, last_id) VALUES (?, ?, ?) ON CONFLICT (bucket) DO "
    "UPDATE SET first_id = min(first_id, excluded.first_id), "
    "last_id = max(last_id, excluded.last_id)"
)
_NARROW = (
    "UPDATE buckets SET (first_id, last_id) = (SELECT ifnull(min(c.id), 0), ifnull(max(c.id), 0) "
    "FROM tool_calls c WHERE c.id BETWEEN first_id AND last_id "
    "AND c.created_at >= ?2 AND c.created_at < ?3) WHERE bucket = ?1"
)
_EMPTY_BUCKET = "DELETE FROM buckets WHERE bucket = ? AND last_id = 0"


def read_counter(connection: apsw.Connection, name: str) -> int:
    """The value of a counter; 0 if nothing was counted yet."""
    row = connection.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
    return 0 if row is None else int(row[0])


def add_to_counter(connection: apsw.Connection, name: str, value: int) -> None:
    """Adds to a counter."""
    connection.execute(_ADD, (name, value))


def reach_counter(connection: apsw.Connection, name: str, value: int) -> None:
    """Raises a counter to a value. Does nothing if the counter is there already."""
    connection.execute(_REACH, (name, value))


def last_call_id(connection: apsw.Connection) -> int:
    """The highest row id that a call ever had. No later call may reuse an id."""
    # SEARCH_DONE counts too: ledgers of early versions have no LAST_FORGOTTEN.
    row = next(connection.execute(_LAST_CALL_ID, (LAST_FORGOTTEN, SEARCH_DONE)))
    return int(row[0])


def count_batch(connection: apsw.Connection, batch: Batch) -> None:
    """Counts the calls that a batch adds and changes."""
    counts = Counter(map(rollup_key, batch.new_calls))
    for call in batch.changed_calls.values():
        counts[batch.counted_before[call.id]] -= 1
        counts[rollup_key(call)] += 1
    add_to_rollups(connection, counts.items())
    # Ids ascend: the last call that is put under a bucket has its highest id. Reversed, its lowest.
    last = {call.created_at // BUCKET_MS: call.id for call in batch.new_calls}
    first = {call.created_at // BUCKET_MS: call.id for call in reversed(batch.new_calls)}
    connection.executemany(_SPAN, ((bucket, first[bucket], last[bucket]) for bucket in first))


def narrow_bucket(connection: apsw.Connection, bucket: int) -> None:
    """Fits the span of a minute to the calls that are left of it."""
    connection.execute(_NARROW, (bucket, bucket * BUCKET_MS, (bucket + 1) * BUCKET_MS))
    connection.execute(_EMPTY_BUCKET, (bucket,))


def add_to_rollups(connection: apsw.Connection, changes: Iterable[tuple[RollupKey, int]]) -> None:
    """Adds to rollups and totals. A change may be negative; a row with a count of 0 is deleted."""
    totals: dict[tuple[str, str, str, str, str], int] = {}
    rollups = [(key, calls) for key, calls in changes if calls]
    for key, calls in rollups:
        totals[key[1:]] = totals.get(key[1:], 0) + calls
    connection.executemany(_ROLLUP, ((*key, calls) for key, calls in rollups))
    connection.executemany(_TOTAL, ((*key, calls) for key, calls in totals.items() if calls))
    connection.executemany(_EMPTY_ROLLUP, (key for key, calls in rollups if calls < 0))
    connection.executemany(_EMPTY_TOTAL, (key for key, calls in totals.items() if calls < 0))
