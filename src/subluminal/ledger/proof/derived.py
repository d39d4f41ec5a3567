"""Proves the counts that the ledger keeps beside its rows: rollups, totals, buckets, gaps, events.

Each is computed again from the rows that other modules prove, and every difference is reported.
`sub ledger rebuild` mends them all.
"""

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from subluminal.ledger.ingest.rows import BUCKET_MS
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.counting import EVENTS_TOTAL, read_counter
from subluminal.ledger.store.segments import true_gaps

_KEYS = "server_name, tool_name, decision, status, rule_id"
_OF_CALL = "server_name, tool_name, ifnull(decision, ''), ifnull(status, ''), ifnull(rule_id, '')"


class _Count(NamedTuple):
    """A table of counts, and the SQL that computes it from the calls."""

    table: str
    key: str
    values: str
    derived: str


_COUNTS = (
    _Count(
        "rollups",
        f"bucket, {_KEYS}",
        "calls",
        f"SELECT created_at / {BUCKET_MS}, {_OF_CALL}, count(*) FROM tool_calls "
        "GROUP BY 1, 2, 3, 4, 5, 6",
    ),
    _Count(
        "totals",
        _KEYS,
        "calls",
        f"SELECT {_OF_CALL}, count(*) FROM tool_calls GROUP BY 1, 2, 3, 4, 5",
    ),
    _Count(
        "buckets",
        "bucket",
        "first_id, last_id",
        f"SELECT created_at / {BUCKET_MS}, min(id), max(id) FROM tool_calls GROUP BY 1",
    ),
)
_MISPLACED = (
    "SELECT * FROM (SELECT id, first_pos, 1 + ifnull(sum(last_n - first_n + 1) OVER "
    "(ORDER BY first_pos, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS wanted "
    "FROM segments) WHERE first_pos <> wanted LIMIT 1"
)
_LAST_POS = "SELECT ifnull(max(first_pos + last_n - first_n), 0) FROM segments"


def check_derived(connection: apsw.Connection, report: Report) -> None:
    """Reports every count that does not follow from the rows."""
    for count in _COUNTS:
        for where, message in _differences(connection, count):
            report.add(count.table, where, message)
            if report.is_full:
                return
    _check_gaps(connection, report)
    _check_positions(connection, report)


def _differences(connection: apsw.Connection, count: _Count) -> Iterator[tuple[str, str]]:
    width = len(count.key.split(", "))
    stored_sql = f"SELECT {count.key}, {count.values} FROM {count.table}"
    told = _only_in(connection, count.derived, stored_sql, width)
    stored = _only_in(connection, stored_sql, count.derived, width)
    for key in sorted({*told, *stored}):
        where = f"`{'/'.join(str(part) for part in key)}`"
        if key not in stored:
            yield where, f"the row is missing; the calls say {_say(told[key])}"
        elif key not in told:
            yield where, f"it is {_say(stored[key])}; no call says so"
        else:
            yield where, f"it is {_say(stored[key])}; the calls say {_say(told[key])}"


def _only_in(
    connection: apsw.Connection, one: str, other: str, width: int
) -> dict[tuple[str, ...], tuple[object, ...]]:
    rows = connection.execute(f"SELECT * FROM ({one}) EXCEPT SELECT * FROM ({other})")
    return {tuple(str(part) for part in row[:width]): row[width:] for row in rows}


def _say(values: tuple[object, ...]) -> str:
    return " to ".join(str(value) for value in values)


def _check_positions(connection: apsw.Connection, report: Report) -> None:
    """Reports places in the order of ingest that are taken twice or by no event, and their count.

    Dropped segments are joined, so the last event may be in one that begins earlier.
    """
    if report.holds and not report.dropped_events:
        for number, first_pos, wanted in connection.execute(_MISPLACED):
            message = (
                f"its first event is at place {first_pos}, not {wanted}, in the order of ingest"
            )
            report.add("segments", f"segment {number}", message)
            return
    stored, told = read_counter(connection, EVENTS_TOTAL), next(connection.execute(_LAST_POS))[0]
    if stored < told or (stored > told and not report.dropped_events):
        report.add("counters", f"`{EVENTS_TOTAL}`", f"it is {stored}; the events say {told}")


def _check_gaps(connection: apsw.Connection, report: Report) -> None:
    """Reports gaps of events that are stored. The proof of the chain reports missing events."""
    rows = connection.execute("SELECT shim, first_n, last_n FROM gaps")
    stored = {(shim, first, last) for shim, first, last in rows}
    for shim, first, last in sorted(stored - true_gaps(connection)):
        report.add("gaps", f"shim {shim} events {first} to {last}", "the ledger has some of them")
