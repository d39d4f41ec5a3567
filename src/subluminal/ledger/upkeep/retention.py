"""Keeps the ledger within its age and size: drops previews first, then calls with their events.

A dropped segment keeps its row and its hashes, so the chain still proves the rest, and gets a
signed record that says why it was due (`store.drops`). Age is that of the events themselves. Events
whose hashes are wrong are never dropped: they are evidence. Every step is small, so ingest never
waits long.
"""

import apsw
import msgspec
from msgspec import Struct

from subluminal.ledger.ingest.rows import Call, RollupKey, rollup_key
from subluminal.ledger.ingest.wire import decode_call
from subluminal.ledger.store.counting import (
    LAST_FORGOTTEN,
    PREVIEWS_DROPPED,
    add_to_counter,
    add_to_rollups,
    narrow_bucket,
    reach_counter,
)
from subluminal.ledger.store.drops import (
    DAY_MS,
    LOW_WATER,
    PURPOSE,
    Drop,
    DropReason,
    get_drop,
    put_drop,
    statement,
)
from subluminal.ledger.store.segments import StoredSegment, segment_by_id, time_of
from subluminal.ledger.store.tables import CONTROL_TABLES, columns
from subluminal.trust.home_key import HomeKey

PREVIEWS_STEP = 2_000
"""Previews dropped per step."""
VACUUM_PAGES = 256
"""Pages given back to the disk per step."""
NEVER_MS = 1 << 62
"""When damaged events may be dropped."""

_ROW = f"SELECT {columns(Call)} FROM tool_calls WHERE call_id = ? AND shim = ?"


class Retention:
    """Keeps a ledger within its age and its size."""

    def __init__(
        self, connection: apsw.Connection, keep_days: int, max_bytes: int, key: HomeKey
    ) -> None:
        self._connection = connection
        self._keep_days = keep_days
        self._max_bytes = max_bytes
        self._key = key
        self._is_shrinking = False
        self._passed: dict[DropReason, tuple[int, int]] = {}
        """`last_ms` and id of the last segment that was not due although its row says so"""

    def step(self, now_ms: int) -> bool:
        """Drops a little. Returns whether there may be more to drop."""
        if self._drop_oldest(now_ms, now_ms - self._keep_days * DAY_MS, DropReason.AGE):
            return True
        if self._is_too_large() and (
            self._drop_previews() or self._drop_oldest(now_ms, now_ms, DropReason.SIZE)
        ):
            return True
        if self._give_back():
            return True
        self._passed.clear()
        return False

    def _is_too_large(self) -> bool:
        size = used_bytes(self._connection)
        bound = self._max_bytes * (LOW_WATER if self._is_shrinking else 1)
        self._is_shrinking = size > bound
        return self._is_shrinking

    def _drop_previews(self) -> bool:
        connection = self._connection
        ids = connection.execute(
            "SELECT id FROM previews ORDER BY id LIMIT ?", (PREVIEWS_STEP,)
        ).fetchall()
        if not ids:
            return False
        with connection:
            connection.executemany("DELETE FROM search WHERE rowid = ?", ids)
            connection.executemany("DELETE FROM previews WHERE id = ?", ids)
            add_to_counter(connection, PREVIEWS_DROPPED, len(ids))
        return True

    def _drop_oldest(self, now_ms: int, before_ms: int, reason: DropReason) -> bool:
        """Drops the oldest segment, if all its events are from before `before_ms`."""
        connection = self._connection
        row = connection.execute(
            "SELECT id FROM segments INDEXED BY segments_by_age WHERE lines IS NOT NULL "
            "AND last_ms < ? AND (last_ms, id) > (?, ?) ORDER BY last_ms, id LIMIT 1",
            (before_ms, *self._passed.get(reason, (-NEVER_MS, 0))),
        ).fetchone()
        if row is None:
            self._drop_runs(before_ms)
            return False
        segment = segment_by_id(connection, int(row[0]))
        newest_ms = _newest_ms(segment)
        if newest_ms >= before_ms:
            self._passed[reason] = (segment.last_ms, segment.id)
            return True
        settings = (self._keep_days, self._max_bytes, used_bytes(connection))
        drop = Drop(reason, newest_ms, now_ms, *settings)
        with connection:
            _drop_calls(connection, segment)
            _drop_acts(connection, segment)
            connection.execute("UPDATE segments SET lines = NULL WHERE id = ?", (segment.id,))
            self._record(segment, drop)
        return True

    def _record(self, segment: StoredSegment, drop: Drop) -> None:
        """Signs why a segment was dropped. Joins it to the one before, if that went likewise."""
        connection = self._connection
        shim = connection.execute("SELECT shim_id FROM shims WHERE id = ?", (segment.shim,))
        shim_id = str(next(shim)[0])
        before = _dropped_before(connection, segment)
        joined = None if before is None else self._joined(shim_id, before, drop)
        if before is None or joined is None:
            put_drop(connection, shim_id, segment, drop, self._key)
            return
        connection.execute("DELETE FROM segments WHERE id = ?", (segment.id,))
        connection.execute(
            "UPDATE segments SET last_n = ?, head = ? WHERE id = ?",
            (segment.last_n, segment.head, before.id),
        )
        both = before._replace(last_n=segment.last_n, head=segment.head)
        put_drop(connection, shim_id, both, joined, self._key)

    def _joined(self, shim_id: str, before: StoredSegment, drop: Drop) -> Drop | None:
        found = get_drop(self._connection, before.id)
        if found is None:
            return None
        earlier, signature = found
        # A record that we did not sign must not get our signature by being joined.
        if not self._key.has_signed(PURPOSE, statement(shim_id, before, earlier), signature):
            return None
        return earlier.with_later(drop)

    def _drop_runs(self, before_ms: int) -> None:
        with self._connection:
            self._connection.execute(
                "DELETE FROM runs WHERE last_event_at < ? AND NOT EXISTS "
                "(SELECT 1 FROM tool_calls c WHERE c.run_id = runs.run_id)",
                (before_ms,),
            )

    def _give_back(self) -> bool:
        free = self._connection.pragma("freelist_count")
        # A tenth of the pages may stay free: the next calls use them.
        if free <= max(VACUUM_PAGES, self._connection.pragma("page_count") // 10):
            return False
        self._connection.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()
        return True


def used_bytes(connection: apsw.Connection) -> int:
    """The size of the ledger's content on disk, in bytes. Free pages do not count."""
    pages: int = connection.pragma("page_count") - connection.pragma("freelist_count")
    size: int = connection.pragma("page_size")
    return pages * size


class _CallEvent(Struct, frozen=True):
    call_id: str
    n: int


def _drop_calls(connection: apsw.Connection, segment: StoredSegment) -> None:
    """Removes the calls whose first event is in the segment."""
    counts: dict[RollupKey, int] = {}
    ids: list[tuple[int]] = []
    for event in _call_events(segment):
        for row in connection.execute(_ROW, (event.call_id, segment.shim)):
            call = Call(*row)
            if _first_n(call) == event.n:
                key = rollup_key(call)
                counts[key] = counts.get(key, 0) - 1
                ids.append((call.id,))
    for table, key_column in (
        ("tool_calls", "id"),
        ("previews", "id"),
        ("hints", "id"),
        ("intents", "id"),
        ("grant_uses", "id"),
        ("search", "rowid"),
        ("search_again", "id"),
    ):
        connection.executemany(f"DELETE FROM {table} WHERE {key_column} = ?", ids)
    if ids:
        reach_counter(connection, LAST_FORGOTTEN, max(ids)[0])
    add_to_rollups(connection, counts.items())
    for bucket in {key[0] for key in counts}:
        narrow_bucket(connection, bucket)


def _drop_acts(connection: apsw.Connection, segment: StoredSegment) -> None:
    """Removes rows whose only event is in the segment: people's acts, ends without a start."""
    for table in (*(each.name for each in CONTROL_TABLES), "ends_ahead"):
        connection.execute(
            f"DELETE FROM {table} WHERE shim = ? AND n BETWEEN ? AND ?",
            (segment.shim, segment.first_n, segment.last_n),
        )


def _call_events(segment: StoredSegment) -> list[_CallEvent]:
    found = []
    for n, line in enumerate(segment.lines(), start=segment.first_n):
        try:
            found.append(_CallEvent(decode_call(line).call.call_id, n))
        except msgspec.MsgspecError:
            # An event of another kind, not of a call.
            continue
    return found


def _first_n(call: Call) -> int | None:
    return next((n for n in (call.start_n, call.decision_n, call.end_n) if n is not None), None)


def _dropped_before(connection: apsw.Connection, segment: StoredSegment) -> StoredSegment | None:
    """The dropped segment that ends where this one begins."""
    row = connection.execute(
        "SELECT id FROM segments WHERE shim = ? AND last_n = ? AND head = ? AND lines IS NULL",
        (segment.shim, segment.first_n - 1, segment.prev),
    ).fetchone()
    return None if row is None else segment_by_id(connection, int(row[0]))


def _newest_ms(segment: StoredSegment) -> int:
    """The time of a segment's newest event; NEVER_MS if its events do not have its hashes."""
    if not segment.has_its_hashes():
        return NEVER_MS
    try:
        return max(map(time_of, segment.lines()))
    except ValueError:
        return NEVER_MS
