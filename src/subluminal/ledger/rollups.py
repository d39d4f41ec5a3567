"""Keeps the counts that facets, histograms and query planning read instead of scanning calls."""

from collections.abc import Iterable

import apsw

from subluminal.ledger.batch import Batch
from subluminal.ledger.rows import RollupKey, rollup_key

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
    counts: dict[RollupKey, int] = {}
    spans: dict[int, tuple[int, int]] = {}
    for call in batch.new_calls:
        key = rollup_key(call)
        counts[key] = counts.get(key, 0) + 1
        span = spans.get(key[0])
        spans[key[0]] = (call.id, call.id) if span is None else (span[0], call.id)
    for call in batch.changed_calls.values():
        before, after = batch.counted_before[call.id], rollup_key(call)
        counts[before] = counts.get(before, 0) - 1
        counts[after] = counts.get(after, 0) + 1
    add(connection, counts.items())
    connection.executemany(_SPAN, ((bucket, *span) for bucket, span in spans.items()))


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
