"""Makes everything that follows from the chained events anew: rows, counts, gaps, the search index.

The chain itself, checkpoints, drops and anchors are not touched. Shims that only pass for signed
are signed again. All of it is one transaction: if it is interrupted, the ledger is as it was. It
uses the code of ingest, so it makes the same rows.

Three things do not follow from the events that are left:

- *Texts of previews.* The events have their hashes. A text is taken from the ledger if its hash is
  right, and else from the journals, which are kept for a day.
- *What dropped events said* of runs, policies and tools. Those rows are kept, and merged.
- *Row ids.* They are the same again, unless events were dropped: then calls get new ones, because
  no call may get the id of a dropped one.
"""

import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256

import msgspec
from msgspec import UNSET

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.contracts.codec import NO_EVENT, decode_event
from subluminal.journal.chain import preview_text_json, with_text
from subluminal.journal.reading import Follower, Lines, journal_files
from subluminal.ledger.ingest.deriving_runs import ENDED, STARTED
from subluminal.ledger.ingest.folding import Folder
from subluminal.ledger.ingest.intake import MAX_EVENTS
from subluminal.ledger.ingest.shims import Shims
from subluminal.ledger.ingest.wire import (
    CallEnd,
    CallEvent,
    CallStart,
    RowEvent,
    decode_row_event,
)
from subluminal.ledger.store.committing import Store
from subluminal.ledger.store.counting import (
    EVENTS_TOTAL,
    LAST_FORGOTTEN,
    SEARCH_DONE,
    last_call_id,
    reach_counter,
)
from subluminal.ledger.store.database import copy_ledger
from subluminal.ledger.store.segments import (
    StoredSegment,
    after,
    runs_with_drops,
    time_of,
    true_gaps,
)
from subluminal.ledger.store.tables import CONTROL_TABLES
from subluminal.ledger.upkeep.deferred import index_some
from subluminal.timestamps import parse_rfc3339

Progress = Callable[[int, int], None]
"""called with the number of events done, and of all events"""

_CLEARED = (
    *("tool_calls", "ends_ahead", "previews", "hints", "intents", "grant_uses", "search_again"),
    *("runs", "policy_versions", "tool_definitions"),
    *("rollups", "totals", "buckets"),
    *(table.name for table in CONTROL_TABLES),
)
_MERGED = ("runs", "policy_versions", "tool_definitions")
_EVER_MS = 1 << 62

_KEEP_TEXT = "INSERT OR IGNORE INTO temp.kept_texts VALUES (?, ?)"
_BEGUN_LATE = (
    "SELECT shim, ifnull(decision_n, end_n) FROM tool_calls WHERE start_n IS NULL "
    "AND ifnull(decision_n, end_n) IS NOT NULL"
)
_LOST_NEXT = (
    "SELECT next_id, outcome, h.call_id, c.shim FROM hints h JOIN tool_calls c USING (id) "
    "WHERE next_id IS NOT NULL AND next_id NOT IN (SELECT id FROM tool_calls)"
)
_KEEP_NEXT = (
    "UPDATE hints SET next_id = ?1, outcome = ?2 WHERE next_id IS NULL AND id = "
    "(SELECT max(id) FROM tool_calls WHERE call_id = ?3 AND shim = ?4)"
)
_FORGET_AHEAD = (
    "DELETE FROM ends_ahead WHERE begun_by IN (SELECT shim_id FROM shims "
    "WHERE id IN (SELECT shim FROM segments WHERE lines IS NULL))"
)
"""Ends whose call was dropped."""
_IS_EARLIER = "mode IS NULL OR (excluded.mode IS NOT NULL AND excluded.started_at < started_at)"
_IS_LATER = "ended_at IS NULL OR excluded.ended_at > ended_at"
_KEEP_RUNS = (
    "INSERT INTO runs SELECT * FROM temp.old_runs WHERE true ON CONFLICT (run_id) DO UPDATE SET "
    "calls = max(calls, excluded.calls), "
    "last_event_at = max(last_event_at, excluded.last_event_at), "
    + ", ".join(f"{name} = iif({_IS_EARLIER}, excluded.{name}, {name})" for name in STARTED)
    + ", "
    + ", ".join(f"{name} = iif({_IS_LATER}, excluded.{name}, {name})" for name in ENDED)
)
_KEEP_POLICIES = (
    "INSERT INTO policy_versions SELECT * FROM temp.old_policy_versions WHERE true "
    "ON CONFLICT DO UPDATE SET mode = ifnull(mode, excluded.mode), "
    "rules_json = ifnull(rules_json, excluded.rules_json), "
    "created_at = min(created_at, excluded.created_at)"
)
_KEEP_TOOLS = (
    "INSERT INTO tool_definitions SELECT * FROM temp.old_tool_definitions WHERE true "
    "ON CONFLICT DO UPDATE SET "
    "definition_json = ifnull(definition_json, excluded.definition_json), "
    "run_id = iif(excluded.first_seen < first_seen, excluded.run_id, run_id), "
    "first_seen = min(first_seen, excluded.first_seen), "
    "last_seen = max(last_seen, excluded.last_seen)"
)
_FORGET_UNSIGNED = (
    "UPDATE shims SET anchored = NULL WHERE anchored NOT IN (SELECT head FROM checkpoint_heads)"
)
_LAST_POS = "SELECT ifnull(max(first_pos + last_n - first_n), 0) FROM segments"


def rebuild(store: Store, places: Places, progress: Progress = lambda done, total: None) -> None:
    """Makes all derived data anew, or changes nothing."""
    connection = store.connection
    with connection:
        _Rebuilding(store, places, progress).run()
    store.forget()


def keep_evidence(store: Store) -> str | None:
    """Copies the ledger if events in it were damaged or changed; returns the path of the copy.

    The rows may be all that still tells what the events said.
    """
    if all(segment.has_its_hashes() for segment in after(store.connection, 0)):
        return None
    path = f"{store.path}.damaged-{now().wall_ms}"
    copy_ledger(store.connection, path)
    return path


class _Rebuilding:
    """One rebuild, within the caller's transaction."""

    def __init__(self, store: Store, places: Places, progress: Progress) -> None:
        self._store = store
        self._connection = store.connection
        self._places = places
        self._progress = progress
        dropped = self._connection.execute("SELECT DISTINCT shim FROM segments WHERE lines IS NULL")
        self._begun: dict[int, set[str]] = {int(shim): set() for (shim,) in dropped}
        """calls that began in the events that are left, of each shim whose events were dropped"""
        self._begun_late = set(self._connection.execute(_BEGUN_LATE))
        self._times: list[tuple[int, int]] = []

    def run(self) -> None:
        execute, executemany = self._connection.execute, self._connection.executemany
        execute("REINDEX")
        execute(_FORGET_UNSIGNED)
        self._keep_texts()
        lost_next = list(execute(_LOST_NEXT))
        for table in _MERGED:
            execute(f"CREATE TEMP TABLE old_{table} AS SELECT * FROM main.{table}")
        first_id = self._clear()
        self._fold()
        if self._begun:
            self._merge_old()
            execute(_FORGET_AHEAD)
            executemany(_KEEP_NEXT, lost_next)
        executemany("UPDATE segments SET last_ms = ? WHERE id = ?", self._times)
        gaps = sorted(true_gaps(self._connection))
        execute("DELETE FROM gaps")
        executemany("INSERT INTO gaps VALUES (?, ?, ?)", gaps)
        self._count_events()
        self._index(first_id)
        for table in ("kept_texts", *(f"old_{name}" for name in _MERGED)):
            execute(f"DROP TABLE temp.{table}")

    def _count_events(self) -> None:
        if not self._begun:
            self._connection.execute("DELETE FROM counters WHERE name = ?", (EVENTS_TOTAL,))
        reach_counter(self._connection, EVENTS_TOTAL, next(self._connection.execute(_LAST_POS))[0])

    def _keep_texts(self) -> None:
        """Keeps every preview text by its hash."""
        connection = self._connection
        connection.execute(
            "CREATE TEMP TABLE kept_texts (hash TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID"
        )
        texts = connection.execute(
            "SELECT args_preview FROM previews UNION ALL SELECT result_preview FROM previews"
        )
        stored = (str(text) for (text,) in texts if text is not None)
        connection.executemany(_KEEP_TEXT, ((_hash(text), text) for text in stored))
        connection.executemany(
            _KEEP_TEXT, ((_hash(text), text) for text in _journalled_texts(self._places))
        )

    def _clear(self) -> int:
        """Removes everything that is derived. Returns the id that the next call gets."""
        connection = self._connection
        if self._begun:
            reach_counter(connection, LAST_FORGOTTEN, last_call_id(connection))
        for table in _CLEARED:
            connection.execute(f"DELETE FROM {table}")
        connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
        connection.execute("DELETE FROM counters WHERE name = ?", (SEARCH_DONE,))
        return last_call_id(connection) + 1

    def _fold(self) -> None:
        """Derives rows from all stored events, in the order of ingest."""
        lookups = self._store.lookups
        folder = Folder(lookups, Shims(lookups).number_of)
        done, folded = 0, 0
        total = int(next(self._connection.execute(_LAST_POS))[0])
        for segment in after(self._connection, 0):
            for n, line, event in self._events(segment):
                if self._belongs(event, segment.shim, n):
                    self._see_run(folder, event, line)
                    folder.fold(event, segment.shim, n, parse_rfc3339(event.ts))
            done = max(done, segment.first_pos + segment.last_n - segment.first_n)
            folded += segment.last_n - segment.first_n + 1
            if folded >= MAX_EVENTS:
                self._store.write_rows(folder.batch)
                folder.settle()
                folded = 0
                self._progress(done, total)
        self._store.write_rows(folder.batch)

    def _events(self, segment: StoredSegment) -> Iterator[tuple[int, bytes, RowEvent]]:
        try:
            lines = segment.lines()
        except zlib.error:
            return  # `verify` reports the damage
        for n, line in enumerate(lines, segment.first_n):
            try:
                event = decode_row_event(line)
                if event is not None:
                    yield n, line, self._with_text(event, line)
            except NO_EVENT:
                continue
        if lines:
            self._check_time(segment, lines)

    def _with_text(self, event: RowEvent, line: bytes) -> RowEvent:
        """The event with its preview text, if that was kept."""
        if isinstance(event, CallStart):
            digest = event.call.preview.hash
        elif isinstance(event, CallEnd):
            digest = event.preview.hash
        else:
            return event
        if digest is UNSET:
            return event
        sql = "SELECT text FROM temp.kept_texts WHERE hash = ?"
        row = self._connection.execute(sql, (digest,)).fetchone()
        if row is None:
            return event
        whole = decode_row_event(with_text(line, msgspec.json.encode(row[0])))
        return event if whole is None else whole

    def _see_run(self, folder: Folder, event: RowEvent, line: bytes) -> None:
        at_ms = parse_rfc3339(event.ts)
        run = folder.batch.runs.get(event.run_id)
        if run is not None:
            run.first_ms, run.last_ms = min(run.first_ms, at_ms), max(run.last_ms, at_ms)
            return
        known = decode_event(line)
        assert known is not None  # only events of known types are folded
        folder.see_run(known, at_ms)

    def _belongs(self, event: RowEvent, shim: int, n: int) -> bool:
        """Whether an event still has a row: a call goes with the event that began it."""
        begun = self._begun.get(shim)
        if begun is None:
            return True
        if not isinstance(event, CallEvent):
            return True
        if isinstance(event, CallEnd) and event.begun_by is not UNSET:
            return True  # its call is another shim's, and may come later
        if isinstance(event, CallStart) or (shim, n) in self._begun_late:
            begun.add(event.call.call_id)
        return event.call.call_id in begun

    def _check_time(self, segment: StoredSegment, lines: list[bytes]) -> None:
        try:
            last_ms = time_of(lines[-1])
        except ValueError:
            return  # `verify` reports the damage
        if last_ms != segment.last_ms:
            self._times.append((last_ms, segment.id))

    def _merge_old(self) -> None:
        """Keeps what dropped events said of runs, policies and tools."""
        connection = self._connection
        rules = list(
            connection.execute("SELECT rules_hash, rules_json FROM temp.old_policy_versions")
        )
        for digest, text in rules:
            if text is not None and _hash(str(text)) != digest:
                connection.execute(
                    "UPDATE temp.old_policy_versions SET rules_json = NULL WHERE rules_hash = ?",
                    (digest,),
                )
        connection.execute("UPDATE temp.old_runs SET id = NULL")
        kept = runs_with_drops(connection)
        gone = connection.execute("SELECT run_id FROM temp.old_runs").fetchall()
        connection.executemany(
            "DELETE FROM temp.old_runs WHERE run_id = ?",
            [run for run in gone if run[0] not in kept],
        )
        for sql in (_KEEP_RUNS, _KEEP_POLICIES, _KEEP_TOOLS):
            connection.execute(sql)

    def _index(self, first_id: int) -> None:
        reach_counter(self._connection, SEARCH_DONE, first_id - 1)
        while index_some(self._connection, _EVER_MS):
            pass


def _journalled_texts(places: Places) -> Iterator[str]:
    """Every preview text that is in a journal."""
    for file in journal_files(places.journal):
        try:
            follower = Follower(file.path)
        except OSError:
            continue
        try:
            while (piece := follower.read()) is not None:
                if isinstance(piece, Lines):
                    yield from _texts_of(piece.lines)
        finally:
            follower.close()


def _texts_of(lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        text = preview_text_json(line)
        if text is not None:
            try:
                yield msgspec.json.decode(text, type=str)
            except msgspec.MsgspecError:
                continue


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
