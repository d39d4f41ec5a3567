"""Commits batches: rows, chained events and journal offsets in one transaction.

The ledger's only writer. INVARIANT: an offset is stored in the same transaction as the rows that
were read up to it, so that a kill at any moment neither loses an event nor stores it twice. After a
failed commit the ledger is as it was, and nothing of the batch is remembered.
"""

import apsw
from msgspec import structs

from subluminal.clock import now
from subluminal.ledger.ingest.batch import Batch, Damaged, Segment, ShimState
from subluminal.ledger.ingest.deriving import merged_flags
from subluminal.ledger.ingest.intake import Intake
from subluminal.ledger.ingest.rows import Call, EndAhead, HintRow, IntentRow, Previews
from subluminal.ledger.store.counting import (
    EVENTS_TOTAL,
    NEWER_EVENTS,
    QUARANTINED,
    QUARANTINED_BYTES,
    SEARCH_DONE,
    add_to_counter,
    count_batch,
    read_counter,
)
from subluminal.ledger.store.database import unavailable
from subluminal.ledger.store.hint_links import HintLinks
from subluminal.ledger.store.lookups import SqliteLookups
from subluminal.ledger.store.segments import RAW
from subluminal.ledger.store.tables import columns, marks
from subluminal.ledger.store.writing import write_acts, write_policies, write_runs, write_tools

_INSERT_CALL = f"INSERT INTO tool_calls ({columns(Call)}) VALUES ({marks(Call)})"
_UPDATE_CALL = (
    "UPDATE tool_calls SET decision = ?, rule_id = ?, status = ?, latency_ms = ?, bytes_out = ?, "
    "preview_truncated = ?, reason_code = ?, severity = ?, would_be = ?, error_class = ?, "
    "decision_n = ?, end_n = ?, end_shim = ?, taint = ? WHERE id = ?"
)
_UPSERT_PREVIEW = (
    f"INSERT INTO previews ({columns(Previews)}) VALUES ({marks(Previews)}) ON CONFLICT (id) DO "
    "UPDATE SET result_preview = excluded.result_preview, "
    "redaction_flags = ifnull(excluded.redaction_flags, redaction_flags)"
)
_UPSERT_HINT = (
    f"INSERT INTO hints ({columns(HintRow)}) VALUES ({marks(HintRow)}) ON CONFLICT (id) DO "
    "UPDATE SET hint_id = ifnull(excluded.hint_id, hint_id), "
    "rule_id = ifnull(excluded.rule_id, rule_id)"
)
_PUT_PROPOSAL = (
    "UPDATE intents SET nonce = ifnull(nonce, ?), principal = ifnull(principal, ?) WHERE id = ?"
)
_PUT_INTENT = (
    f"INSERT INTO intents ({columns(IntentRow)}) VALUES ({marks(IntentRow)}) ON CONFLICT (id) DO "
    "UPDATE SET pack = excluded.pack, version = excluded.version, "
    "fingerprint = excluded.fingerprint, intent_kind = excluded.intent_kind, "
    "intent_hash = excluded.intent_hash, nonce = ifnull(nonce, excluded.nonce), "
    "principal = ifnull(principal, excluded.principal), taint = excluded.taint, "
    "decision_kind = excluded.decision_kind, refusal_code = excluded.refusal_code, "
    "guard = excluded.guard, divergence = excluded.divergence"
)
_PUT_AHEAD = f"INSERT OR REPLACE INTO ends_ahead ({columns(EndAhead)}) VALUES ({marks(EndAhead)})"
_UPSERT_SHIM = (
    "INSERT INTO shims (id, shim_id, run_id, is_chained_here, last_n, head) "
    "VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO UPDATE SET last_n = excluded.last_n, head = excluded.head"
)
_INSERT_SEGMENT = (
    "INSERT INTO segments (shim, first_n, last_n, first_pos, prev, head, last_ms, codec, lines) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_DAMAGED = (
    f"INSERT OR IGNORE INTO quarantine ({columns(Damaged)}, seen_at) VALUES ({marks(Damaged)}, ?)"
)
_FORGET_DAMAGED = "DELETE FROM quarantine WHERE id <= (SELECT max(id) FROM quarantine) - ?"

MAX_QUARANTINE = 10_000
"""Damaged stretches that the ledger describes. Of older ones only the counts stay."""


class Store:
    """The ledger, open for writing, and the intake whose batches it commits."""

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self.connection = connection
        self.path = path
        self.lookups = SqliteLookups(connection)
        self.intake = Intake(self.lookups)
        self._hint_links = HintLinks(connection)
        self.events_total = read_counter(connection, EVENTS_TOTAL)

    def commit(self) -> None:
        """Writes the current batch. Drops it and raises LedgerUnavailable if that fails."""
        intake = self.intake
        if not intake.has_work:
            return
        try:
            with self.connection:
                self._write(intake)
        except apsw.Error as error:
            self.forget()
            raise unavailable(self.path, error) from error
        self.events_total += intake.events
        intake.settle()

    def forget(self) -> None:
        """Drops the current batch and all memory of the ledger, and reads the ledger again."""
        try:
            self.intake = Intake(self.lookups)
            self._hint_links = HintLinks(self.connection)
            self.events_total = read_counter(self.connection, EVENTS_TOTAL)
        except apsw.Error as error:
            raise unavailable(self.path, error) from error

    def close(self) -> None:
        """Closes the ledger. SQLite moves the WAL into the database file."""
        self.connection.close()

    def _write(self, intake: Intake) -> None:
        self._write_chain(intake)
        for segment in intake.segments:
            run = intake.folder.batch.runs.get(segment.run_id)
            if run is not None:
                run.last_ms = max(run.last_ms, segment.last_ms)
        self.write_rows(intake.folder.batch)
        self._write_origins(intake)
        add_to_counter(self.connection, EVENTS_TOTAL, intake.events)
        if intake.newer_events:
            add_to_counter(self.connection, NEWER_EVENTS, intake.newer_events)

    def _write_chain(self, intake: Intake) -> None:
        executemany = self.connection.executemany
        position = self.events_total + 1
        rows = []
        for segment in intake.segments:
            rows.append(_segment_row(position, segment))
            position += len(segment.chained)
        # After the loop, because `_segment_row` sets the new head of its shim.
        executemany(_UPSERT_SHIM, map(_shim_row, intake.touched.values()))
        executemany(_INSERT_SEGMENT, rows)
        executemany(
            "DELETE FROM gaps WHERE shim = ? AND first_n = ?",
            [(each.id, first) for each in intake.touched.values() for first in each.lost_gaps],
        )
        executemany(
            "INSERT INTO gaps VALUES (?, ?, ?)",
            [(each.id, *gap) for each in intake.touched.values() for gap in each.new_gaps],
        )

    def write_rows(self, batch: Batch) -> None:
        """Writes the rows of a batch, within the caller's transaction."""
        executemany = self.connection.executemany
        changed = batch.changed_calls.values()
        executemany(_INSERT_CALL, map(structs.astuple, batch.new_calls))
        executemany(_UPDATE_CALL, map(_update_row, changed))
        late = [row_id for row_id in batch.previews if row_id < batch.first_new_id]
        self._merge_stored_flags([batch.previews[row_id] for row_id in late])
        executemany(_UPSERT_PREVIEW, map(structs.astuple, batch.previews.values()))
        executemany(_UPSERT_HINT, map(structs.astuple, batch.hints.values()))
        executemany(_PUT_PROPOSAL, batch.proposals)  # first: the earliest audit record counts
        executemany(_PUT_INTENT, map(structs.astuple, batch.intents.values()))
        executemany(_PUT_AHEAD, map(structs.astuple, batch.ends_ahead.values()))
        executemany("DELETE FROM ends_ahead WHERE begun_by = ? AND call_id = ?", batch.ends_met)
        write_runs(self.connection, batch)
        write_policies(self.connection, batch)
        write_acts(self.connection, batch)
        self._hint_links.write(batch)
        write_tools(self.connection, batch)
        count_batch(self.connection, batch)
        # A call that is in the text index already must be indexed again.
        executemany(
            "INSERT OR IGNORE INTO search_again SELECT ?1 WHERE ?1 <= "
            f"(SELECT value FROM counters WHERE name = '{SEARCH_DONE}')",
            [(row_id,) for row_id in late],
        )

    def _merge_stored_flags(self, previews: list[Previews]) -> None:
        """Adds the redaction flags that are stored for earlier calls to their new previews."""
        for preview in previews:
            if preview.redaction_flags is not None:
                stored = self.connection.execute(
                    "SELECT redaction_flags FROM previews WHERE id = ?", (preview.id,)
                ).fetchone()
                if stored is not None and stored[0] is not None:
                    flags = merged_flags(str(stored[0]), preview.redaction_flags)
                    preview.redaction_flags = flags

    def _write_origins(self, intake: Intake) -> None:
        executemany = self.connection.executemany
        at = now().wall_ms
        executemany(
            "INSERT INTO journal_offsets VALUES (?, ?, ?) ON CONFLICT (path) DO "
            "UPDATE SET offset = excluded.offset, ingested_at = excluded.ingested_at",
            [(path, offset, at) for path, offset in intake.offsets.items()],
        )
        self._write_damaged(intake, at)
        executemany("INSERT INTO unnumbered VALUES (?)", [(digest,) for digest in intake.digests])

    def _write_damaged(self, intake: Intake, at: int) -> None:
        if not intake.damaged:
            return
        intake.close_stretch()
        connection = self.connection
        for damaged in intake.damaged:
            connection.execute(_INSERT_DAMAGED, (*structs.astuple(damaged), at))
            if connection.changes():  # else it is known, and was read again
                add_to_counter(connection, QUARANTINED, damaged.lines)
                add_to_counter(connection, QUARANTINED_BYTES, damaged.length)
        connection.execute(_FORGET_DAMAGED, (MAX_QUARANTINE,))


def _shim_row(state: ShimState) -> tuple[object, ...]:
    shim = (state.id, state.shim_id, state.run_id)
    return (*shim, state.is_chained_here, state.last_n, _unhex(state.head))


def _segment_row(first_pos: int, segment: Segment) -> tuple[object, ...]:
    state, head, last_n = segment.shim, segment.head(), segment.next_n - 1
    if last_n == state.last_n:
        state.head = head
    span = (state.id, segment.first_n, last_n, first_pos, _unhex(segment.prev), _unhex(head))
    return (*span, segment.last_ms, RAW, b"\n".join(segment.chained))


def _update_row(call: Call) -> tuple[object, ...]:
    return (
        call.decision,
        call.rule_id,
        call.status,
        call.latency_ms,
        call.bytes_out,
        call.preview_truncated,
        call.reason_code,
        call.severity,
        call.would_be,
        call.error_class,
        call.decision_n,
        call.end_n,
        call.end_shim,
        call.taint,
        call.id,
    )


def _unhex(digest: bytes) -> bytes:
    return bytes.fromhex(digest.decode())
