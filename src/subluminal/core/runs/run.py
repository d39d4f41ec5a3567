"""One run as this process takes part in it: its shared state, its journal, its events.

A run knows how it begins and ends (shared-runs). It knows neither policies nor protocols. Entering
and leaving never fail: a suspended process that holds the run's lock must not block this one.
"""

import os
import time
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from subluminal.clock import now, rfc3339
from subluminal.contracts import PACK_VERSION
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.events import (
    AgentResolvedAgain,
    Event,
    Health,
    Prompt,
    PromptSubmitted,
    RunStart,
    RunStarted,
    ShimHealth,
    TaintChange,
    TaintChanged,
)
from subluminal.contracts.identity import Identity, Source, Workload
from subluminal.contracts.templates import EventTemplates, encode_json
from subluminal.contracts.vocabulary import Mode, RunStatus, Taint
from subluminal.core.runs.ending import end_run
from subluminal.core.runs.failures import SERVED, Served, packed
from subluminal.core.runs.start_level import lower_to_start, lower_to_start_unlocked
from subluminal.journal import Journal, JournalUnavailable
from subluminal.journal.seals import SEALED, sealed
from subluminal.state.errors import StateAbsent, StateBusy, StateUnusable
from subluminal.state.mutex import UNSHARED, Mutex, Unshared
from subluminal.state.processes import start_time
from subluminal.state.run_state import RunState

if TYPE_CHECKING:
    from subluminal.contracts.agents import AgentResolved

_T = TypeVar("_T")

_TURN_WAIT_MS = 10_000
"""Longest wait for the journal by default: another thread may be writing to a slow disk."""
_LEAVE_S = 1.0
"""How long a process that leaves tries to get the run's lock."""


def _not_stopped() -> str:
    return ""


class Turn:
    """The lock of a run's journal, for runs that threads share. It is not re-entrant."""

    def __init__(self, journal: Journal, wait_ms: int | None) -> None:
        self._journal = journal
        self._wait_s = (_TURN_WAIT_MS if wait_ms is None else wait_ms) / 1000
        self._mutex = Mutex()
        self.lock: Any = self._mutex.lock
        """what a turn takes; for code on the path of every call, which does the same itself"""

    def __enter__(self) -> None:
        if not self._mutex.acquire(self._wait_s):
            self._journal.lost += 1
            raise JournalUnavailable(self._journal.path, "another thread is writing to it")

    def __exit__(self, *_: object) -> None:
        self._mutex.release()


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
        why_stopped: Callable[[], str] = _not_stopped,
        turn: Turn | None = None,
        seal_key: bytes | None = None,
    ) -> None:
        """`why_stopped` returns who stopped the run and why; empty if nobody did.

        `turn` is given if several threads share the run, `seal_key` if the journal is sealed.
        """
        self.run_id = run_id
        self.identity = identity
        self.state = state
        self.journal = journal
        self.why_stopped = why_stopped
        self.turn: Turn | Unshared = turn or UNSHARED
        self.is_threaded = turn is not None
        self._source = source
        self._seal_key = seal_key
        self._sealed_n = journal.n
        """number of the event after the last sealed one; before any event, that of the first"""
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
        self._agent: AgentResolved | None = None
        """who acts, as this process last recorded it"""
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

    def enter(
        self,
        mode: Mode,
        policy: PolicyRef,
        meta: dict[str, Any] | None = None,
        policy_problem: str | None = None,
        start: Taint | None = None,
        agent: "AgentResolved | None" = None,
    ) -> bool:
        """Attaches to the run, and writes run_start if nobody has.

        `policy_problem` is why a policy is not in force. `start` is the level that the run starts
        with at most; None if nothing speaks of it. `agent` is who acts, if a rule asks. Returns
        False if the run's state cannot be reached.
        """
        at = now()
        born = start_time(os.getpid()) or 0
        try:
            with self.state.locked():
                first = self.state.claim_start(at.wall_ms, at.mono_ms)
                self.state.attach(self.shim_id, os.getpid(), born)
                change = None if start is None else lower_to_start(self.state, start)
                level = self.state.taint.state().level
        except (StateBusy, StateUnusable):
            if start is not None:
                self._record_change(lower_to_start_unlocked(self.state, start))
            return False
        self.count_events()
        self.is_entered = True
        if first:
            source = self.identity.env_source
            known = {} if source is None else {"env_source": source.value}
            started = RunStarted(
                started_at=rfc3339(at.wall_ms),
                mode=mode,
                policy=policy,
                meta={**known, **(meta or {})} or UNSET,
                policy_problem=policy_problem or UNSET,
                taint=UNSET if start is None else level,
                agent=UNSET if agent is None else agent,
            )
            self._agent = agent
            self.record(lambda: self.emit(RunStart, run=started))
        else:
            self._record_change(change)
            self.tell_agent(agent)
        return True

    def tell_agent(self, agent: "AgentResolved | None") -> None:
        """Records who acts from now on, unless this process has recorded just that."""
        if agent is None or agent == self._agent:
            return
        try:
            seq = self.state.last_seq()
        except StateUnusable:
            seq = 0
        if self.record(lambda: self.emit(AgentResolvedAgain, agent=agent, seq=seq)):
            self._agent = agent

    def start_at(self, start: Taint) -> None:
        """Lowers the run as a policy says that came into force during the run."""
        try:
            with self.state.locked():
                change = lower_to_start(self.state, start)
        except (StateBusy, StateUnusable):
            change = lower_to_start_unlocked(self.state, start)
        self._record_change(change)

    def _record_change(self, change: TaintChange | None) -> None:
        if change is not None:
            self.record(lambda: self.emit(TaintChanged, taint=change))

    def count_events(self) -> None:
        """Keeps the number of events in the journal in the run's state (provable-ledger)."""
        counter = self.state.counter(self.shim_id)
        if counter is not None:
            self.journal.count_in(*counter)

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
            principal=UNSET if self.identity.principal is None else self.identity.principal,
            workload=UNSET if self._workload is None else self._workload,
            **fields,
        )
        line = encode_json(event)
        if self._seal_key is not None and kind.__struct_config__.tag in SEALED:
            line = sealed(self._seal_key, line, self.journal.prev)
            self._sealed_n = self.journal.n + 1
        self.journal.add(line)

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

    def record_prompt(self, text: bytes) -> None:
        """Records that a person sent a prompt: its size and hash, not its text."""
        prompt = Prompt(bytes=len(text), hash=sha256(text).hexdigest())
        self.record(lambda: self.emit(PromptSubmitted, prompt=prompt))

    def record_gap(self) -> None:
        """Records how many events a full disk has cost, once the journal can be written again."""
        lost = self.journal.lost
        if lost > self._lost_told and self.health("degraded", events_lost=lost - self._lost_told):
            self._lost_told = lost

    def leave(self, failure: RunStatus | None = None, served: Served = SERVED) -> None:
        """Detaches from the run. The last process to leave writes run_end, unless `sub run` does.

        `failure` is CANCELLED or FAILED if the run is, whatever becomes of its other servers. A
        second call does nothing. If the lock is not available for a second, a suspended process
        holds it, so this process is not the last.
        """
        if self.has_left:
            return
        self.has_left = True

        def detach() -> bool:
            if failure is not None:
                self.state.note_failure(failure, served.reason)
            broken = b"" if served.failure is None else packed(served.failure)
            self.state.note_server(worked=served.worked, failure=broken)
            return self.state.detach(self.shim_id) == 0 and self.state.mark_ended()

        if self._with_lock(detach, patience_s=_LEAVE_S):
            self.record(lambda: end_run(self))

    def end(self, status: RunStatus, reason: str | None, *, patience_s: float) -> RunStatus:
        """Ends the run, even if others take part in it; returns the status that was recorded."""
        self.has_left = True

        def detach() -> None:
            self.state.detach(self.shim_id)
            self.state.mark_ended()

        # Without its state the run ends all the same; the journal says that it ended.
        self._with_lock(detach, patience_s=patience_s)
        terminated = self.termination() is not None
        self.record(lambda: end_run(self, status, reason))
        return RunStatus.TERMINATED if terminated else status

    def _with_lock(self, work: Callable[[], _T], *, patience_s: float) -> _T | None:
        """Does work under the lock, and tries for so long to get it; None if it cannot."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                with self.state.locked():
                    return work()
            except (StateAbsent, StateUnusable):
                return None
            except StateBusy:
                if time.monotonic() > deadline:
                    return None

    def termination(self) -> str | None:
        """Returns why a rule or a person ended the run; None if neither did."""
        ended = self.state.terminated()
        return self.why_stopped() or (None if ended is None else ended.message)

    def drop(self) -> None:
        """Closes what a forked child inherited, without recording anything."""
        self.is_dropped = self.has_left = True
        self.journal.drop()
        self.state.close()

    def close(self) -> None:
        """Closes journal and state; a sealed journal ends with a sealed event (provable-ledger)."""
        if self._seal_key is not None and self.journal.n != self._sealed_n:
            self.health("stopping", detail="the journal is closed")
        self._seal_key = None
        self.journal.close()
        self.state.close()


def _nothing() -> None:
    """What `flush` records."""
