"""One run as this process takes part in it: its shared state, its journal, its events (shared-runs,
journal-first).

Knows how a run begins and ends. Does not know policies or protocols. Whatever else fails, entering
and leaving do not: a stopped process that holds the run's lock must not take this one with it.
"""

import os
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
from subluminal.state.run_state import RunState
from subluminal.trust.identity.agent import process_start


class Run:
    """A run that this process is attached to, from `open` to `leave`."""

    def __init__(
        self, run_id: str, identity: Identity, source: Source, state: RunState, journal: Journal
    ) -> None:
        self.run_id = run_id
        self.identity = identity
        self.state = state
        self.journal = journal
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
        """whether the run's other shims know of this one"""
        self.has_left = False
        self.is_stopped: Callable[[], bool] = _not_stopped
        """whether a person has stopped the run"""

    @property
    def source(self) -> Source:
        """Who writes this run's events here."""
        return self._source

    @property
    def shim_id(self) -> str:
        """This process' name within the run."""
        return self._source.shim_id

    def enter(self, mode: Mode, policy: PolicyRef, meta: dict[str, Any] | None = None) -> bool:
        """Attaches to the run, and opens it if nobody has; False if its state is out of reach."""
        at = now()
        try:
            with self.state.locked():
                first = self.state.claim_start(at.wall_ms, at.mono_ms)
                self.state.attach(self.shim_id, os.getpid(), process_start(os.getpid()))
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
        """Adds an event that is not one of the three of every call. The caller flushes."""
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
        """Emits and flushes what need not succeed; False if the journal could not take it."""
        try:
            write()
            self.journal.flush()
        except JournalUnavailable:
            return False
        return True

    def health(self, state: str, **fields: Any) -> bool:
        """Records a step in the life of the upstream process, or of this one (no-orphans)."""
        return self.record(lambda: self.emit(ShimHealth, health=Health(state=state, **fields)))

    def record_gap(self) -> None:
        """Says in the journal what a full disk kept out of it, once it takes lines again (journal-
        first).
        """
        lost = self.journal.lost
        if lost > self._lost_told and self.health("degraded", events_lost=lost - self._lost_told):
            self._lost_told = lost

    def leave(self, failure: RunStatus | None = None) -> None:
        """Detaches. The last one out writes run_end, unless `sub run` does. Once only.

        Where the lock cannot be had another process lives that holds it, so this is not the last.
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

    def close(self) -> None:
        """Lets go of the files."""
        self.journal.close()
        self.state.close()


def _not_stopped() -> bool:
    return False


def end_run(run: Run, status: RunStatus | None = None, reason: str | None = None) -> None:
    """Emits run_end with the totals of all shims.

    Status follows shared-runs where it is not given.
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
