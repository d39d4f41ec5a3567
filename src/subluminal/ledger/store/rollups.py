"""Keeps the counts that facets, histograms and query planning read instead of scanning calls."""

from collections import Counter
from collections.abc import Iterable

import apsw

from subluminal.ledger.ingest.batch import Batch
from subluminal.ledger.store.rows import BUCKET_MS, RollupKey, rollup_key

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


def write(connection: apsw.Connection, batch: Batch) -> None:
    """Counts what a batch adds and changes."""
    counts = Counter(map(rollup_key, batch.new_calls))
    for call in batch.changed_calls.values():
        counts[batch.counted_before[call.id]] -= 1
        counts[rollup_key(call)] += 1
    add(connection, counts.items())
    # Ids rise: the last one that a bucket meets is its highest, and the other way round.
    last = {call.created_at // BUCKET_MS: call.id for call in batch.new_calls}
    first = {call.created_at // BUCKET_MS: call.id for call in reversed(batch.new_calls)}
    connection.executemany(_SPAN, ((bucket, first[bucket], last[bucket]) for bucket in first))


def add(connection: apsw.Connection, changes: Iterable[tuple[RollupKey, int]]) -> None:
    """Adds to the counts, which may be less than nothing; a count of none is no row."""
    totals: dict[tuple[str, str, str, str, str], int] = {}
    rollups = [(key, calls) for key, calls in changes if calls]
    for key, calls in rollups:
        totals[key[1:]] = totals.get(key[1:], 0) + calls
    connection.executemany(_ROLLUP, ((*key, calls) for key, calls in rollups))
    connection.executemany(_TOTAL, ((*key, calls) for key, calls in totals.items() if calls))
    connection.executemany(_EMPTY_ROLLUP, (key for key, calls in rollups if calls < 0))
    connection.executemany(_EMPTY_TOTAL, (key for key, calls in totals.items() if calls < 0))
