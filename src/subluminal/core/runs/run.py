"""One run as this process takes part in it: its shared state, its journal, its events.

A run knows how it begins and ends (shared-runs). It knows neither policies nor protocols. Entering
and leaving never fail: a suspended process that holds the run's lock must not block this one.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import msgspec

from subluminal.clock import now, rfc3339
from subluminal.contracts import PACK_VERSION
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.events import (
    Event,
    Health,
    RunEnd,
    RunEnded,
    RunStart,
    RunStarted,
    RunSummary,
    ShimHealth,
)
from subluminal.contracts.identity import Identity, Source, Workload
from subluminal.contracts.templates import EventTemplates, encode_json
from subluminal.contracts.vocabulary import Mode, RunStatus
from subluminal.journal import Journal, JournalUnavailable
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.mutex import Mutex
from subluminal.state.processes import start_time
from subluminal.state.run_state import RunState

_TURN_WAIT_MS = 10_000
"""Longest wait for the journal by default: another thread may be writing to a slow disk."""


def _not_stopped() -> bool:
    return False


class Turn:
    """The lock of a run's journal, for runs that threads share. It is not re-entrant."""

    def __init__(self, journal: Journal, wait_ms: int | None) -> None:
        self._journal = journal
        self._wait_s = (_TURN_WAIT_MS if wait_ms is None else wait_ms) / 1000
        self._mutex = Mutex()

    def __enter__(self) -> None:
        if not self._mutex.acquire(self._wait_s):
            self._journal.lost += 1
            raise JournalUnavailable(self._journal.path, "another thread is writing to it")

    def __exit__(self, *_: object) -> None:
        self._mutex.release()


class _AlwaysMine:
    """The stand-in for a `Turn` in a run that only one thread uses."""

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return


_ALWAYS_MINE = _AlwaysMine()


class Run:
    """A run that this process is attached to, from `enter` to `leave`."""

    def __init__(
        self,
        run_id: str,
        identity: Identity,
        source: Source,
        state: RunState,
        journal: Journal,
        *,
        is_stopped: Callable[[], bool] = _not_stopped,
        turn: Turn | None = None,
    ) -> None:
        """`is_stopped` returns True if a person has stopped the run.

        `turn` is given if several threads share the run.
        """
        self.run_id = run_id
        self.identity = identity
        self.state = state
        self.journal = journal
        self.is_stopped = is_stopped
        self.turn: Turn | _AlwaysMine = turn or _ALWAYS_MINE
        self.is_threaded = turn is not None
        self._source = source
        self._workload = None if identity.workload == Workload() else identity.workload
        self.templates = EventTemplates(
            run_id=run_id,
            agent_id=identity.agent_id,
            client=identity.client,
            env=identity.env,
            source=source,
            principal=identity.principal,
            workload=self._workload,
        )
        self._lost_told = 0
        self.is_entered = False
        """whether this process is attached, so that the run's other shims know of it"""
        self.has_left = False
        self.is_dropped = False
        """whether this is a forked child, and the run belongs to its parent"""

    @property
    def source(self) -> Source:
        """The source that this process puts into its events of the run."""
        return self._source

    @property
    def shim_id(self) -> str:
        """The id of this process within the run."""
        return self._source.shim_id

    def enter(self, mode: Mode, policy: PolicyRef, meta: dict[str, Any] | None = None) -> bool:
        """Attaches to the run, and writes run_start if nobody has.

        Returns False if the run's state cannot be reached.
        """
        at = now()
        try:
            with self.state.locked():
                first = self.state.claim_start(at.wall_ms, at.mono_ms)
                self.state.attach(self.shim_id, os.getpid(), start_time(os.getpid()) or 0)
        except (StateBusy, StateUnusable):
            return False
        self.is_entered = True
        if first:
            started = RunStarted(
                started_at=rfc3339(at.wall_ms), mode=mode, policy=policy, meta=meta or msgspec.UNSET
            )
            self.record(lambda: self.emit(RunStart, run=started))
        return True

    def emit(self, kind: type[Event], **fields: Any) -> None:
        """Buffers an event of any kind but the three of every call. Call it through `record`."""
        event = kind(
            v=PACK_VERSION,
            ts=rfc3339(now().wall_ms),
            run_id=self.run_id,
            agent_id=self.identity.agent_id,
            client=self.identity.client,
            env=self.identity.env,
            source=msgspec.structs.replace(
                self._source, n=self.journal.n, prev=self.journal.prev.decode()
            ),
            principal=msgspec.UNSET if self.identity.principal is None else self.identity.principal,
            workload=msgspec.UNSET if self._workload is None else self._workload,
            **fields,
        )
        self.journal.add(encode_json(event))

    def record(self, write: Callable[[], None]) -> bool:
        """Calls `write` and flushes the journal; returns False if the journal is unavailable.

        For events whose loss does not change a decision.
        """
        try:
            with self.turn:
                write()
                self.journal.flush()
        except JournalUnavailable:
            return False
        return True

    def flush(self) -> bool:
        """Writes what is buffered; returns False if the journal could not take it."""
        if self.is_threaded:
            return self.record(_nothing)
        try:
            self.journal.flush()
        except JournalUnavailable:
            return False
        return True

    def health(self, state: str, **fields: Any) -> bool:
        """Records a shim_health event: what happened to the server's process, or to this one."""
        return self.record(lambda: self.emit(ShimHealth, health=Health(state=state, **fields)))

    def record_gap(self) -> None:
        """Records how many events a full disk has cost, once the journal can be written again."""
        lost = self.journal.lost
        if lost > self._lost_told and self.health("degraded", events_lost=lost - self._lost_told):
            self._lost_told = lost

    def leave(self, failure: RunStatus | None = None) -> None:
        """Detaches from the run. The last process to leave writes run_end, unless `sub run` does.

        A second call does nothing. If the lock is not available, another living process holds it,
        so this process is not the last.
        """
        if self.has_left:
            return
        self.has_left = True
        try:
            with self.state.locked():
                if failure is not None:
                    self.state.note_failure(failure)
                is_last = self.state.detach(self.shim_id) == 0 and self.state.mark_ended()
        except (StateBusy, StateUnusable):
            return
        if is_last:
            self.record(lambda: end_run(self))

    def end(self, status: RunStatus, reason: str | None, *, patience_s: float) -> RunStatus:
        """Ends the run, even if others take part in it; returns the status that was recorded."""
        self.has_left = True
        deadline = time.monotonic() + patience_s
        while True:
            try:
                with self.state.locked():
                    self.state.detach(self.shim_id)
                    self.state.mark_ended()
                break
            except (StateBusy, StateUnusable):
                # The run ends without its state; the journal says that it ended.
                if time.monotonic() > deadline:
                    break
        terminated = self.state.terminated() is not None or self.is_stopped()
        self.record(lambda: end_run(self, status, reason))
        return RunStatus.TERMINATED if terminated else status

    def drop(self) -> None:
        """Closes what a forked child inherited, without recording anything."""
        self.is_dropped = self.has_left = True
        self.journal.drop()
        self.state.close()

    def close(self) -> None:
        """Closes journal and state."""
        self.journal.close()
        self.state.close()


def _nothing() -> None:
    """What `flush` records."""


def end_run(run: Run, status: RunStatus | None = None, reason: str | None = None) -> None:
    """Buffers run_end with the totals of all shims.

    A stopped run is TERMINATED. Otherwise the status is the one given, a failure that a shim noted,
    or SUCCEEDED.
    """
    at = now()
    totals = run.state.totals()
    started = run.state.started_at()
    if run.state.terminated() is not None or run.is_stopped():
        status = RunStatus.TERMINATED
    summary = RunSummary(
        calls_total=totals.calls_total,
        calls_allowed=totals.calls_allowed,
        calls_blocked=totals.calls_blocked,
        calls_throttled=totals.calls_throttled,
        errors_total=totals.errors_total,
        duration_ms=max(0, at.wall_ms - started.wall_ms) if started else 0,
    )
    ended = RunEnded(
        ended_at=rfc3339(at.wall_ms),
        status=status or run.state.failure() or RunStatus.SUCCEEDED,
        summary=summary,
        reason=msgspec.UNSET if reason is None else reason,
    )
    run.emit(RunEnd, run=ended)
