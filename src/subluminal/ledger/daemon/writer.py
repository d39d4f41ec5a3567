"""The thread that writes the ledger: ingest first, housekeeping when there is nothing to ingest.

One round reads journals and the ring into one batch, and commits the batch. If a commit fails, its
lines are read again: nothing is lost, and nothing is stored twice. A round is a bounded piece of
work, whatever the journals hold, so `stop` takes effect soon.

Rounds that find nothing come less and less often, up to IDLE_S apart, or WATCHED_S while a stream
is open. A reader that needs the newest events asks for a round (`refresh`).
"""

import threading
import time
from collections.abc import Callable

import apsw

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.config.settings import LedgerSettings
from subluminal.journal.reading import READ_LINES, remove_ingested
from subluminal.ledger.api.status import Progress
from subluminal.ledger.daemon.belongings import Belongings
from subluminal.ledger.ingest.following import COLD_POLL_MS, IDLE_POLL_MS, Following
from subluminal.ledger.ingest.ring import Parcel, Ring
from subluminal.ledger.store.committing import Store
from subluminal.ledger.store.counting import PREVIEWS_DROPPED, add_to_counter
from subluminal.ledger.store.database import LedgerUnavailable, unavailable
from subluminal.ledger.upkeep.checkpoints import write_checkpoint
from subluminal.ledger.upkeep.deferred import index_some, pack_some
from subluminal.ledger.upkeep.opening import open_ledger_writer
from subluminal.ledger.upkeep.retention import Retention
from subluminal.ledger.upkeep.written import count_written, find_behind
from subluminal.trust.home_key import home_key

POLL_S = 0.05
"""Pause after the first round that found nothing to do, in seconds."""
SLOWER = 1.5
"""Each pause is so much longer than the one before, while there is nothing to do."""
WATCHED_S = 0.1
"""Longest pause while a stream is open, in seconds."""
IDLE_S = 2.0
"""Longest pause otherwise, in seconds."""
RETRY_S = 1.0
"""Pause after a round that could not write, in seconds."""
REFRESH_S = 2.0
"""How long `refresh` waits at most, in seconds."""
HOUSE_MS = 1_000
"""How often housekeeping is looked at while nothing is ingested."""
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
        is_watched: Callable[[], bool] = lambda: False,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`is_watched` says whether a stream is open; `on_end` is called when the thread ends."""
        super().__init__(name="ledger-writer")
        self._places = places
        self._ring = ring
        self._on_commit = on_commit
        self._is_watched = is_watched
        self._on_end = on_end
        self._wake = threading.Event()
        self._is_stopping = False
        self._pause_s = POLL_S
        self._rounds = threading.Condition()
        self._begun = 0
        """number of the current round"""
        self._read_all = 0
        """number of the last round that read everything there was"""
        self._must_look = False
        """whether the next round must look at cold journals too"""
        self._parcel: Parcel | None = None
        """a parcel of which some lines are taken"""
        self._waiting: list[Callable[[bool], None]] = []
        self.progress = Progress()
        self.failure: BaseException | None = None
        """the bug that ended this thread, if one did"""
        self.is_homeless = False
        """whether this thread ended because its home or its ledger is gone"""
        self._key = home_key(places.state)
        self._store = Store(open_ledger_writer(places, self._key), places.ledger)
        self._belongings = Belongings(places.home, places.ledger)
        self._following = Following(places.journal, self._store.lookups)
        self._retention = Retention(
            self._store.connection, settings.keep_days, settings.max_bytes, self._key
        )
        self._next_checkpoint_ms = now().mono_ms + CHECKPOINT_MS
        self._next_tidy_ms = self._next_house_ms = now().mono_ms
        self._rate = (now().mono_ms, self._store.events_total)
        self.progress.events_total = self._store.events_total
        self.progress.backlog_bytes = self._following.backlog_bytes()

    def wake(self) -> None:
        """Starts the next round now, because there are lines in the ring."""
        self._wake.set()

    def refresh(self) -> None:
        """Returns when everything journalled before this call is stored, or after REFRESH_S."""
        with self._rounds:
            wanted = self._begun + 1
            self._must_look = True
            self._wake.set()
            self._rounds.wait_for(lambda: self._read_all >= wanted or self._is_stopping, REFRESH_S)

    def ask_for_checkpoint(self, done: Callable[[bool], None]) -> None:
        """Signs a checkpoint as soon as everything is ingested that can be read now.

        `done` is then called once, in this thread, with whether that was possible.
        """
        self._waiting.append(done)
        self.wake()

    def stop(self) -> None:
        """Ends the thread after the current round. It then signs a last checkpoint."""
        self._is_stopping = True
        self._wake.set()
        with self._rounds:
            self._rounds.notify_all()

    def run(self) -> None:
        try:
            while not self._is_stopping:
                self._try_round()
            if self._belongings.are_ours():
                self._try(self._checkpoint)
            self._tell_waiting(False)
        except BaseException as error:  # noqa: BLE001 - `serve` raises it again
            self.failure = error
        finally:
            self._ring.release([self._parcel] if self._parcel else [], is_stored=False)
            self._ring.close()
            self._following.close()
            self._store.close()
            self._is_stopping = True
            with self._rounds:
                self._rounds.notify_all()
            self._on_end()

    def _try_round(self) -> None:
        if not self._belongings.are_ours():
            self.is_homeless = self._is_stopping = True
            return
        self._wake.clear()
        with self._rounds:
            self._begun += 1
        is_busy = self._try(self._round)
        if is_busy is None:
            self._wake.wait(RETRY_S)
        elif is_busy:
            self._pause_s = POLL_S
        else:
            self._wake.wait(self._pause_s)
            longest = WATCHED_S if self._is_watched() else IDLE_S
            self._pause_s = min(self._pause_s * SLOWER, longest)

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
        must_look, self._must_look = self._must_look, False
        parcels: list[Parcel] = []
        try:
            self._fill(parcels)
            may_be_more = self._following.pump(
                self._store.intake,
                everything=must_look,
                cold_poll_ms=COLD_POLL_MS if self._is_watched() else IDLE_POLL_MS,
            )
            may_be_more = may_be_more or self._parcel is not None
            has_news = self._commit()
        except (LedgerUnavailable, apsw.Error):
            parcels += [self._parcel] if self._parcel else []
            self._parcel = None
            self._ring.release(parcels, is_stored=False)
            self._store.forget()
            self._following.rewind()
            raise
        self._ring.release(parcels, is_stored=True)
        self._report(may_be_more=may_be_more, must_look=must_look)
        return may_be_more or self._keep_house(has_news=has_news) or has_news

    def _report(self, *, may_be_more: bool, must_look: bool) -> None:
        """Says how far this round came, to those who wait for it."""
        self._measure(now().mono_ms, must_look=must_look)
        with self._rounds:
            if may_be_more:
                self._must_look = self._must_look or must_look
            else:
                self._read_all = self._begun
                self._rounds.notify_all()

    def _fill(self, done: list[Parcel]) -> None:
        """Takes lines from the ring, in slices. Parcels that are taken whole go to `done`."""
        intake = self._store.intake
        while not intake.is_full:
            parcel = self._parcel or self._ring.take()
            if parcel is None:
                break
            lines = parcel.lines[parcel.taken : parcel.taken + READ_LINES]
            before = (intake.events, intake.duplicates, intake.damaged_lines)
            intake.take(lines, parcel.origin, parcel.offset)
            parcel.stored += intake.events - before[0]
            parcel.known += intake.duplicates - before[1]
            parcel.quarantined += intake.damaged_lines - before[2]
            parcel.taken += len(lines)
            parcel.offset += sum(map(len, lines)) + len(lines)
            is_done = parcel.taken == len(parcel.lines)
            self._parcel = None if is_done else parcel
            done += [parcel] if is_done else []

    def _commit(self) -> bool:
        """Commits the batch. Returns whether there was anything to commit."""
        store, progress = self._store, self.progress
        progress.duplicates += store.intake.duplicates
        store.intake.duplicates = 0
        if not store.intake.has_work:
            return False
        store.commit()
        dropped = self._ring.take_dropped()
        if dropped:
            with store.connection:
                add_to_counter(store.connection, PREVIEWS_DROPPED, dropped)
        progress.events_total = store.events_total
        progress.active_s = time.monotonic()
        self._on_commit(store.events_total)
        return True

    def _keep_house(self, *, has_news: bool) -> bool:
        """Does one piece of housekeeping that is due. Returns whether there may be more."""
        at = now()
        if at.mono_ms >= self._next_checkpoint_ms or self._waiting:
            return self._checkpoint()
        if not has_news and at.mono_ms < self._next_house_ms:
            return False
        connection = self._store.connection
        if index_some(connection, at.wall_ms) or pack_some(connection):
            return True
        self._next_house_ms = at.mono_ms + HOUSE_MS
        return at.mono_ms >= self._next_tidy_ms and self._tidy(at.wall_ms, at.mono_ms)

    def _checkpoint(self) -> bool:
        at = now()
        self._next_checkpoint_ms = at.mono_ms + CHECKPOINT_MS
        write_checkpoint(self._store.connection, self._places, self._key, at.wall_ms)
        self._tell_waiting(True)
        return False

    def _tell_waiting(self, is_signed: bool) -> None:
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done(is_signed)

    def _tidy(self, wall_ms: int, mono_ms: int) -> bool:
        if self._retention.step(wall_ms):
            # The intake may remember open calls that are dropped now.
            self._store.forget()
            self._next_house_ms = mono_ms
            return True
        self._next_tidy_ms = mono_ms + TIDY_MS
        self._look_for_losses()
        self._remove_journals(wall_ms)
        return False

    def _look_for_losses(self) -> None:
        """Notices journals that were deleted or cut short before they were read."""
        # Counted before the journals are looked at: shims go on writing meanwhile.
        counts = count_written(self._places)
        behind = find_behind(self._store.connection, self._places, counts)
        self.progress.events_lost = sum(each.lost for each in behind)

    def _remove_journals(self, wall_ms: int) -> None:
        connection = self._store.connection
        rows = list(connection.execute("SELECT path, offset, ingested_at FROM journal_offsets"))
        for name, offset, ingested_at in rows:
            path = f"{self._places.journal}/{name}"
            if remove_ingested(path, offset=offset, ingested_ms=ingested_at, now_ms=wall_ms):
                with connection:
                    connection.execute("DELETE FROM journal_offsets WHERE path = ?", (name,))

    def _measure(self, mono_ms: int, *, must_look: bool) -> None:
        since, events = self._rate
        if mono_ms - since >= 1_000 or must_look:
            self.progress.backlog_bytes = self._following.backlog_bytes()
            self.progress.unfinished_bytes = self._following.unfinished_bytes()
        if mono_ms - since >= 1_000:
            rate = (self._store.events_total - events) * 1_000 / (mono_ms - since)
            self.progress.events_per_s = round(rate, 1)
            self._rate = (mono_ms, self._store.events_total)
