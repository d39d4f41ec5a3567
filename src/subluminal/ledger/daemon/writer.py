"""The thread that writes the ledger: ingest first, housekeeping when there is nothing to ingest.

One round reads journals and the ring into one batch, and commits the batch. If a commit fails, its
lines are read again: nothing is lost, and nothing is stored twice.
"""

import threading
from collections.abc import Callable

import apsw

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.config.settings import LedgerSettings
from subluminal.journal.reading import remove_ingested
from subluminal.ledger.api.status import Progress
from subluminal.ledger.ingest.following import Following
from subluminal.ledger.ingest.ring import Parcel, Ring
from subluminal.ledger.store.committing import Store
from subluminal.ledger.store.counting import PREVIEWS_DROPPED, add_to_counter
from subluminal.ledger.store.database import LedgerUnavailable, open_writer, unavailable
from subluminal.ledger.upkeep.checkpoints import load_key, write_checkpoint
from subluminal.ledger.upkeep.deferred import index_some, pack_some
from subluminal.ledger.upkeep.retention import Retention

POLL_S = 0.05
"""Pause after a round that found nothing to do, in seconds."""
RETRY_S = 1.0
"""Pause after a round that could not write, in seconds."""
CHECKPOINT_MS = 60_000
"""How often checkpoints are signed."""
TIDY_MS = 600_000
"""How often retention looks for something to drop."""


class Writer(threading.Thread):
    """Owns the ledger's only writing connection."""

    def __init__(
        self,
        places: Places,
        settings: LedgerSettings,
        ring: Ring,
        on_commit: Callable[[int], None] = lambda position: None,
    ) -> None:
        super().__init__(name="ledger-writer")
        self._places = places
        self._settings = settings
        self._ring = ring
        self._on_commit = on_commit
        self._wake = threading.Event()
        self._is_stopping = False
        self.progress = Progress()
        self.failure: BaseException | None = None
        """the bug that ended this thread, if one did"""
        key = load_key(places, create=True)
        assert key is not None  # it was just created
        self._key = key
        self._store = Store(open_writer(places.ledger), places.ledger)
        self._following = Following(places.journal, self._store.lookups)
        self._retention = Retention(self._store.connection, settings.keep_days, settings.max_bytes)
        self._next_checkpoint_ms = now().mono_ms + CHECKPOINT_MS
        self._next_tidy_ms = now().mono_ms
        self._rate = (now().mono_ms, self._store.events_total)
        self.progress.events_total = self._store.events_total

    def wake(self) -> None:
        """Starts the next round now, because there are lines in the ring."""
        self._wake.set()

    def stop(self) -> None:
        """Ends the thread after the current round. It then signs a last checkpoint."""
        self._is_stopping = True
        self._wake.set()

    def run(self) -> None:
        try:
            while not self._is_stopping:
                self._try_round()
            self._try(self._checkpoint)
        except BaseException as error:  # noqa: BLE001 - `serve` raises it again
            self.failure = error
        finally:
            self._ring.close()
            self._following.close()
            self._store.close()

    def _try_round(self) -> None:
        self._wake.clear()
        is_busy = self._try(self._round)
        if is_busy is None:
            self._wake.wait(RETRY_S)
        elif not is_busy:
            self._wake.wait(POLL_S)

    def _try(self, step: Callable[[], bool]) -> bool | None:
        """Runs a step. Returns None if the ledger cannot be written now."""
        try:
            is_busy = step()
        except (LedgerUnavailable, apsw.Error, OSError) as error:
            if isinstance(error, apsw.Error):
                error = unavailable(self._places.ledger, error)
            self.progress.problem = str(error)
            return None
        self.progress.problem = None
        return is_busy

    def _round(self) -> bool:
        """Ingests one batch, or does some housekeeping. Returns whether there is more to do."""
        self._measure(now().mono_ms)
        parcels: list[Parcel] = []
        try:
            may_be_more = self._fill(parcels)
            self._commit()
        except (LedgerUnavailable, apsw.Error):
            self._ring.release(parcels, is_stored=False)
            self._store.forget()
            self._following.rewind()
            raise
        self._ring.release(parcels, is_stored=True)
        return may_be_more or self._keep_house()

    def _fill(self, parcels: list[Parcel]) -> bool:
        intake = self._store.intake
        while not intake.is_full:
            parcel = self._ring.take()
            if parcel is None:
                break
            parcels.append(parcel)
            before = (intake.events, intake.duplicates, len(intake.damaged))
            intake.take(parcel.lines, parcel.origin, parcel.offset)
            parcel.stored = intake.events - before[0]
            parcel.known = intake.duplicates - before[1]
            parcel.quarantined = len(intake.damaged) - before[2]
        return self._following.pump(intake) or intake.is_full

    def _commit(self) -> None:
        store, progress = self._store, self.progress
        progress.duplicates += store.intake.duplicates
        store.intake.duplicates = 0
        if not store.intake.has_work:
            return
        store.commit()
        dropped = self._ring.take_dropped()
        if dropped:
            with store.connection:
                add_to_counter(store.connection, PREVIEWS_DROPPED, dropped)
        progress.events_total = store.events_total
        self._on_commit(store.events_total)

    def _keep_house(self) -> bool:
        """Does one piece of housekeeping that is due. Returns whether there may be more."""
        at = now()
        if at.mono_ms >= self._next_checkpoint_ms:
            return self._checkpoint()
        connection = self._store.connection
        if index_some(connection, at.wall_ms) or pack_some(connection):
            return True
        return at.mono_ms >= self._next_tidy_ms and self._tidy(at.wall_ms, at.mono_ms)

    def _checkpoint(self) -> bool:
        at = now()
        self._next_checkpoint_ms = at.mono_ms + CHECKPOINT_MS
        write_checkpoint(self._store.connection, self._places, self._key, at.wall_ms)
        return False

    def _tidy(self, wall_ms: int, mono_ms: int) -> bool:
        if self._retention.step(wall_ms):
            # The intake may remember open calls that are dropped now.
            self._store.forget()
            return True
        self._next_tidy_ms = mono_ms + TIDY_MS
        self._remove_journals(wall_ms)
        return False

    def _remove_journals(self, wall_ms: int) -> None:
        connection = self._store.connection
        rows = list(connection.execute("SELECT path, offset, ingested_at FROM journal_offsets"))
        for name, offset, ingested_at in rows:
            path = f"{self._places.journal}/{name}"
            if remove_ingested(path, offset=offset, ingested_ms=ingested_at, now_ms=wall_ms):
                with connection:
                    connection.execute("DELETE FROM journal_offsets WHERE path = ?", (name,))

    def _measure(self, mono_ms: int) -> None:
        since, events = self._rate
        if mono_ms - since >= 1_000:
            rate = (self._store.events_total - events) * 1_000 / (mono_ms - since)
            self.progress.events_per_s = round(rate, 1)
            self.progress.backlog_bytes = self._following.backlog_bytes()
            self._rate = (mono_ms, self._store.events_total)
