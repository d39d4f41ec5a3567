"""Spans of time in which a text search looks, each with the row ids that its calls can have."""

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from subluminal.ledger.ingest.rows import BUCKET_MS
from subluminal.ledger.query.questions import CallFilter, Paging, numbers_of

FIRST_CALLS = 500
"""How many calls the first span holds. It is found exactly; further spans are whole minutes."""
GROWTH = 8
"""How many times more calls each further span holds, at least."""


class Span(NamedTuple):
    """A span of time, half-open, and the row ids that its calls can have, inclusive."""

    since_ms: int | None
    until_ms: int | None
    first_id: int
    last_id: int


def growing_spans(
    connection: apsw.Connection, wanted: CallFilter, paging: Paging
) -> Iterator[Span]:
    """Yields longer and longer spans from where the page begins; the last is all that is asked."""
    since, until = wanted.since_ms, wanted.until_ms
    if paging.cursor is not None:
        at = numbers_of(paging.cursor, 2)[0]
        if paging.newest_first:
            until = at + 1 if until is None else min(until, at + 1)
        else:
            since = at if since is None else max(since, at)
    first = _first_span(connection, since, until, newest_first=paging.newest_first)
    if first is not None:
        yield first
    direction = "DESC" if paging.newest_first else "ASC"
    rows = connection.execute(
        "SELECT bucket, first_id, last_id FROM buckets WHERE bucket BETWEEN ? AND ? "
        f"ORDER BY bucket {direction}",
        (_bucket(since, -(2**62)), _bucket(until, 2**62)),
    )
    first_id, last_id, calls, bound = 2**62, 0, 0, FIRST_CALLS * GROWTH
    for bucket, first, last in rows:
        first_id, last_id = min(first_id, first), max(last_id, last)
        calls += last - first + 1
        if calls < bound:
            continue
        bound = calls * GROWTH
        if paging.newest_first:
            yield Span(_later(since, bucket * BUCKET_MS), until, first_id, last_id)
        else:
            end = (bucket + 1) * BUCKET_MS
            yield Span(since, end if until is None else min(until, end), first_id, last_id)
    yield Span(since, until, first_id, last_id)


def _first_span(
    connection: apsw.Connection, since: int | None, until: int | None, *, newest_first: bool
) -> Span | None:
    """The span of the first calls; None if there are not more than that."""
    low = -(2**62) if since is None else since
    high = 2**62 if until is None else until
    row = connection.execute(
        "SELECT count(*), min(id), max(id), min(created_at), max(created_at) FROM ("
        "SELECT id, created_at FROM tool_calls INDEXED BY calls_by_time "
        "WHERE created_at >= ? AND created_at < ? "
        f"ORDER BY created_at {'DESC' if newest_first else 'ASC'} LIMIT ?)",
        (low, high, FIRST_CALLS),
    ).fetchone()
    if row is None or row[0] < FIRST_CALLS:
        return None
    _, first_id, last_id, first_ms, last_ms = row
    # Calls of the last millisecond may have been left out.
    if newest_first:
        return Span(first_ms + 1, until, first_id, last_id)
    return Span(since, last_ms, first_id, last_id)


def _bucket(at_ms: int | None, otherwise: int) -> int:
    return otherwise if at_ms is None else at_ms // BUCKET_MS


def _later(since_ms: int | None, start_ms: int) -> int:
    return start_ms if since_ms is None else max(since_ms, start_ms)
