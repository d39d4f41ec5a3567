"""The runs that one host takes part in, by run id.

Usually there is one. There are several where calls name their own run: one server process may serve
several sessions of a client (shared-runs). A run is entered when a call first names it, and left
when the host closes or when too many runs are open. If its files could not be opened at first, it
is *partial*, and opening them is tried again once a second.

With threads, `entry` is held while a run is entered or mended and while policies change, and
`_mutex` for a few dictionary operations. Without threads both are stand-ins that cost nothing.
"""

import os
from _thread import LockType, allocate_lock
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.config.settings import Settings
from subluminal.contracts.decision import Decision
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import ReasonCode, RunStatus, Taint
from subluminal.core.controls.kill_switch import KillSwitch, StopView
from subluminal.core.enforcer import Enforcer
from subluminal.core.gates import STATE_LOST, Gates, approvals_folder
from subluminal.core.policies.layer import Load
from subluminal.core.policies.watching import Policies
from subluminal.core.records.listings import Listings
from subluminal.core.records.policy_loads import record_loads
from subluminal.core.records.previews import Previewer
from subluminal.core.ruling import Ruling
from subluminal.core.runs.attendance import (
    Attendance,
    forget_attendance,
    keep_attendance,
    note_attendance,
)
from subluminal.core.runs.failures import SERVED, Served
from subluminal.core.runs.finding import Finders
from subluminal.core.runs.names import host_id, uuid7
from subluminal.core.runs.opening import (
    ALONE,
    AbsentState,
    Sharing,
    open_run,
    open_state,
    problem_of,
    stand_in,
)
from subluminal.core.runs.run import Run
from subluminal.core.targets.source import TargetSource
from subluminal.policy.evaluation import Engine
from subluminal.policy.refusing import blocked
from subluminal.policy.taint import lowest
from subluminal.state.errors import StateLost
from subluminal.state.mutex import UNSHARED, Mutex, Unshared
from subluminal.state.run_state import RunState

if TYPE_CHECKING:
    from subluminal.contracts.agents import AgentResolved, Claims
    from subluminal.core.acting.acting import Acting
    from subluminal.core.controls.approvals import Approvals

MAX_RUNS = 64
"""Most runs that are open at once; past it, the oldest idle run is left."""

_MEND_EVERY_MS = 1_000
_ENTRY_WAIT_MS = 10_000
"""Longest wait by default for another thread that enters a run."""
_MAX_LOADS = 16
"""Most policy loads that are kept, to be recorded in runs that are entered later."""


_BUSY = blocked(
    ReasonCode.EVALUATION_ERROR, "the run is still being opened by another thread; try again"
)
"""The refusal of a call that cannot wait until the first policies are known."""


class Parts(NamedTuple):
    """What a host is made of; `wiring` puts it together."""

    places: Places
    identity: Identity
    policies: Policies
    previewer: Previewer
    sharing: Sharing = ALONE
    meta: Mapping[str, Any] = MappingProxyType({})
    """what SUB_RUN_META says about every run that begins here"""
    client_asks: bool = False
    """whether the client asks its person about calls that need approval"""
    taint: Taint | None = None
    """level that SUB_TAINT gives to every run that begins here"""
    agents_above: tuple[str, ...] = ()
    """agents that handed the work on: if one of them is revoked, calls are refused too"""
    open_acting: "Callable[..., Acting] | None" = None
    """opens who finds out about the agent, once a rule asks; None if nobody does"""
    claims: "Claims | None" = None
    """what this process says of itself, other than its launch; None if that is nothing"""


class _Closing(NamedTuple):
    """A run that is left with the last of its calls."""

    enforcer: Enforcer
    failure: RunStatus | None
    served: Served


class OpenRuns:
    """Enters runs as calls name them, and holds their enforcers."""

    def __init__(
        self, parts: Parts, settings: Settings, *, on_bug: Callable[[Exception], None]
    ) -> None:
        self.open: dict[str, Enforcer] = {}
        """enforcers of the runs that were entered, by run_id"""
        self.partial: set[str] = set()
        """ids of open runs whose state or journal could not be opened, or that were not entered"""
        self.listings = Listings(parts.previewer)
        self.kill_switch = KillSwitch(parts.places.state)
        self._agents_above, self._claims = parts.agents_above, parts.claims
        self.no_run = self.kill_switch.view("", parts.identity.agent_id)
        """the stops that apply before any run is known"""
        self._places, self._identity, self._policies, self._previewer, self._sharing = parts[:5]
        self._meta, self._client_asks, self._taint = parts.meta, parts.client_asks, parts.taint
        self._max_journal_bytes = settings.limits.max_journal_bytes
        self.targets = TargetSource(settings)
        self._on_bug = on_bug
        self._machine_id = host_id(parts.places)
        self._proc_id = uuid7()
        self._left: list[Enforcer] = []
        self._closing: list[_Closing] = []
        """runs to be left and closed with the last of their calls"""
        self.finders = Finders(parts.places)
        self._mend_at_ms = 0
        self._loads: list[Load] = []
        self._news: list[Callable[[Run], object]] = []
        self.mutex: LockType | Unshared = UNSHARED
        self.entry: Mutex | Unshared = UNSHARED
        """held while a run is entered or mended, and while policies change"""
        wait_ms = _ENTRY_WAIT_MS if parts.sharing.wait_ms is None else parts.sharing.wait_ms
        self.bound_s = wait_ms / 1000
        """longest wait for `entry` in seconds"""
        self._make_locks()

    # Entering

    def identify(self, identity: Identity) -> None:
        """Sets who acts in the runs that are entered from now on."""
        self._identity = identity

    def enforcer(self, run_id: str, meta: dict[str, Any] | None = None) -> Enforcer:
        """Returns the enforcer of a run; enters the run first if this host has not entered it.

        If another thread is entering the run for longer than this one may wait, returns a stand-in
        that applies `decision_on_error`.
        """
        found = self.open.get(run_id)
        if found is not None and run_id not in self.partial:
            return found
        if not self.entry.acquire(self.bound_s):
            return self._stand_in(run_id)
        try:
            found = self.open.get(run_id)
            if found is None:
                self._make_room()
                return self._enter(run_id, self._opened(run_id), meta)
            return self._mended(run_id, found) if run_id in self.partial else found
        finally:
            self.entry.release()

    def claim(self, run_id: str) -> Enforcer:
        """Returns the enforcer of a run and counts one open call, so that the run is not left."""
        while True:
            with self.mutex:
                known = self.open.get(run_id)
                if known is not None and run_id not in self.partial:
                    known.open_calls += 1
                    return known
            found = self.enforcer(run_id)
            with self.mutex:
                if self.open.get(run_id) is found or problem_of(found.run):
                    found.open_calls += 1
                    return found
            # Another thread left the run between the two steps, to make room.

    def first_end(self, ruling: Ruling) -> bool:
        """Returns True for the first thread that ends a call."""
        with self.mutex:
            was_ending, ruling.is_ending = ruling.is_ending, True
        return not was_ending

    def release(self, enforcer: Enforcer) -> None:
        """Counts the end of a call that `claim` counted as open."""
        with self.mutex:
            enforcer.open_calls -= 1
            if not self._closing or enforcer.open_calls:
                return
            closing = next((each for each in self._closing if each.enforcer is enforcer), None)
            if closing is None:
                return
            self._closing.remove(closing)
        self._leave(*closing)
        enforcer.run.close()
        self._note_others()

    def interrupting(self, run_id: str) -> Enforcer:
        """Returns an enforcer for a call that interrupts this very thread, which holds the run."""
        return self._stand_in(run_id, "this call interrupts another one")

    def _stand_in(self, run_id: str, why: str = "another thread is opening it") -> Enforcer:
        """Returns an enforcer that applies `decision_on_error`, for a call that cannot wait."""
        run = stand_in(run_id, self._identity, why)
        view = self._stops_of(run_id)
        self.kill_switch.forget(view)
        last = next(iter(self.open.values()), None)
        if last is not None:
            return Enforcer(
                run,
                last.engine,
                self._previewer,
                Gates(view),
                refusal=last.refusal,
                targets=self.targets,
            )
        return Enforcer(
            run, Engine((), self._identity), self._previewer, Gates(view), refusal=_BUSY
        )

    def _opened(self, run_id: str, state: RunState | None = None) -> Enforcer:
        run = open_run(
            self._places,
            run_id,
            self._identity,
            machine_id=self._machine_id,
            proc_id=self._proc_id,
            max_journal_bytes=self._max_journal_bytes,
            sharing=self._sharing,
            state=state,
        )
        return self._enforcer_of(run)

    def _stops_of(self, run_id: str) -> StopView:
        return self.kill_switch.view(run_id, self._identity.agent_id, *self._agents_above)

    def _enforcer_of(self, run: Run) -> Enforcer:
        gates = Gates(
            self._stops_of(run.run_id),
            lambda: self._approvals_of(run),
            approvals_folder(self._places.state, run.run_id),
        )
        return Enforcer(
            run,
            self._policies.engine_for(run.run_id),
            self._previewer,
            gates,
            refusal=self._refusal_of(run),
            targets=self.targets,
            on_bug=self._on_bug,
        )

    def _refusal_of(self, run: Run) -> Decision | None:
        """Returns the refusal of every call of a run, or None."""
        is_lost = isinstance(problem_of(run), StateLost)
        return STATE_LOST if is_lost else self._policies.refusal

    def _approvals_of(self, run: Run) -> "Approvals":
        from subluminal.core.controls.approvals import Approvals

        return Approvals(self._places.state, run, self._previewer, client_asks=self._client_asks)

    def _enter(self, run_id: str, enforcer: Enforcer, meta: dict[str, Any] | None) -> Enforcer:
        run = enforcer.run
        # Noted first: a process that is killed between the two is closed like any other.
        attendance = Attendance(run_id, self._identity, run.source)
        note_attendance(self._places, os.getpid(), attendance, self._owner)
        engine = enforcer.engine
        run.enter(
            engine.mode,
            engine.policy,
            self._meta_with(meta),
            self._policies.problem,
            self._start_of(engine),
            self._agent_of(enforcer),
        )
        with self.mutex:
            self.open[run_id] = enforcer
            if not _is_whole(run):
                self.partial.add(run_id)
            news, loads = list(self._news), self._loads
        for each in news:
            each(run)
        record_loads(run, loads)
        self.listings.record_all(run)
        self.finders.look(run_id)
        return enforcer

    def _start_of(self, engine: Engine) -> Taint | None:
        """Returns the level that a run starts with at most; None if nothing speaks of it."""
        if self._taint is None:
            return engine.start if engine.asks_taint else None
        return lowest([self._taint, engine.start])

    def _agent_of(self, enforcer: Enforcer) -> "AgentResolved | None":
        """Returns who acts, if a rule asks; the enforcer learns what is only said of it."""
        actor = self._policies.actor_of(enforcer.run.run_id)
        enforcer.claims = self._claims if actor is None else actor.claims
        if actor is not None and self._claims is not None:
            from subluminal.core.acting.acting import claims_with

            enforcer.claims = claims_with(actor.claims, self._claims)
        return None if actor is None else actor.record

    def _meta_with(self, meta: dict[str, Any] | None) -> dict[str, Any] | None:
        if not self._meta:
            return meta
        from subluminal.core.runs.meta import masked_meta

        return {**masked_meta(self._meta, self._previewer.safe), **(meta or {})}

    def _mended(self, run_id: str, found: Enforcer) -> Enforcer:
        """Tries again to open or enter a partial run; returns its enforcer."""
        mono_ms = now().mono_ms
        if mono_ms < self._mend_at_ms:
            return found
        self._mend_at_ms = mono_ms + _MEND_EVERY_MS
        run = found.run
        if problem_of(run):
            return self._reopened(run_id) or found
        engine, problem = found.engine, self._policies.problem
        meta, start = self._meta_with(None), self._start_of(engine)
        if run.enter(engine.mode, engine.policy, meta, problem, start, self._agent_of(found)):
            self.partial.discard(run_id)
        return found

    def _reopened(self, run_id: str) -> Enforcer | None:
        state = open_state(self._places, run_id, self._sharing)
        if isinstance(state, AbsentState):
            return None
        fresh = self._opened(run_id, state)
        if problem_of(fresh.run):
            self._forget(fresh)
            return None
        # Pending calls end in the enforcer that began them.
        self.leave(run_id)
        return self._enter(run_id, fresh, None)

    def _make_room(self) -> None:
        with self.mutex:
            if len(self.open) < MAX_RUNS:
                return
            idle = next((name for name, each in self.open.items() if not each.open_calls), None)
            if idle is None:
                return
            enforcer = self.open.pop(idle)
            self.partial.discard(idle)
        self._leave(enforcer)
        self._forget(enforcer)
        self._policies.forget(idle)

    def _forget(self, enforcer: Enforcer) -> None:
        enforcer.run.close()
        self.kill_switch.forget(enforcer.gates.stops)

    # Records in every run

    def tell(self, news: Callable[[Run], object]) -> None:
        """Calls `news` with every open run, and with each run that is entered later."""
        with self.mutex:
            self._news.append(news)
            runs = [enforcer.run for enforcer in self.open.values()]
        for run in runs:
            news(run)

    def record_loads(self, loads: list[Load]) -> None:
        """Records policy loads in every open run, and in each run that is entered later."""
        with self.mutex:
            self._loads = [*self._loads, *loads][-_MAX_LOADS:]
            runs = [enforcer.run for enforcer in self.open.values()]
        for run in runs:
            record_loads(run, loads)

    def flush(self) -> None:
        """Writes what is buffered in every journal."""
        for enforcer in [*self.open.values(), *self._left]:
            enforcer.run.flush()

    def health(self, state: str, **fields: Any) -> None:
        """Records a shim_health event in every run, including runs that were just left."""
        for enforcer in [*self.open.values(), *self._left]:
            enforcer.run.health(state, **fields)

    def adopt_policies(self) -> None:
        """Gives every run the engine and the refusal that are in force now."""
        for enforcer in list(self.open.values()):
            self._adopt(enforcer)

    def _adopt(self, enforcer: Enforcer) -> None:
        enforcer.engine = self._policies.engine_for(enforcer.run.run_id)
        enforcer.refusal = self._refusal_of(enforcer.run)
        enforcer.run.tell_agent(self._agent_of(enforcer))
        if enforcer.engine.start is not Taint.SYSTEM:
            enforcer.run.start_at(enforcer.engine.start)

    def adopt_settings(self, previewer: Previewer, settings: Settings) -> None:
        """Puts new settings into force in every run."""
        self._previewer.adopt(previewer)
        self.targets.adopt(settings)
        self._max_journal_bytes = settings.limits.max_journal_bytes
        for enforcer in list(self.open.values()):
            enforcer.run.journal.rotate_at(self._max_journal_bytes)

    # Leaving

    def leave(self, run_id: str, failure: RunStatus | None = None, served: Served = SERVED) -> None:
        """Leaves one run. Its journal stays open until `close`: calls may still end in it."""
        with self.mutex:
            enforcer = self.open.pop(run_id, None)
            self.partial.discard(run_id)
        if enforcer is not None and not self._is_put_off(enforcer, failure, served):
            self._leave(enforcer, failure, served)
            self._left.append(enforcer)

    def end(self, run_id: str, failure: RunStatus | None = None) -> None:
        """Leaves one run and closes its files, at once or with the last of its calls."""
        with self.mutex:
            enforcer = self.open.pop(run_id, None)
            self.partial.discard(run_id)
        if enforcer is None:
            return
        if not self._is_put_off(enforcer, failure):
            self._leave(enforcer, failure)
            enforcer.run.close()
        self.kill_switch.forget(enforcer.gates.stops)
        self._policies.forget(run_id)
        self._note_others()

    def _is_put_off(
        self, enforcer: Enforcer, failure: RunStatus | None, served: Served = SERVED
    ) -> bool:
        """Whether a run is left later, with the last of its calls, which other threads make.

        Its end counts how these calls end. If the process dies before, whoever finds it dead ends
        them, because it still takes part in the run.
        """
        with self.mutex:
            if not enforcer.open_calls or not self._sharing.threads:
                return False
            self._closing.append(_Closing(enforcer, failure, served))
            return True

    def _note_others(self) -> None:
        """Notes which runs this host still takes part in, after it left one."""
        if not self.entry.acquire(self.bound_s):
            return
        try:
            kept = [*self.open.values(), *self._left, *(each.enforcer for each in self._closing)]
            notes = [Attendance(each.run.run_id, self._identity, each.run.source) for each in kept]
            keep_attendance(self._places, os.getpid(), notes, self._owner)
        finally:
            self.entry.release()

    def leave_all(self, failure: RunStatus | None, served: Served = SERVED) -> None:
        """Leaves every run; the last process to leave a run ends it."""
        for run_id in list(self.open):
            self.leave(run_id, failure, served)
        if self._closing:
            self._note_others()
        else:
            forget_attendance(self._places, os.getpid(), self._owner)

    def close(self) -> None:
        """Closes every file. Call `leave_all` first.

        With threads, a run whose calls are still under way is closed when the last of them ends.
        """
        left, self._left = self._left, []
        for enforcer in left:
            enforcer.run.close()
        self.kill_switch.close()
        self.finders.reap()

    def drop_inherited(self) -> None:
        """Closes what a forked child inherited from its parent, without recording anything."""
        self._make_locks()
        closing = [each.enforcer for each in self._closing]
        inherited = [*self.open.values(), *self._left, *closing]
        self.open.clear()
        self.partial.clear()
        self._left.clear()
        self._closing.clear()
        self._proc_id = uuid7()
        for enforcer in inherited:
            enforcer.run.drop()

    def _leave(
        self, enforcer: Enforcer, failure: RunStatus | None = None, served: Served = SERVED
    ) -> None:
        if enforcer.flush():
            enforcer.run.record_gap()
        enforcer.run.leave(failure, served)

    @property
    def _owner(self) -> str:
        """The name under which this host notes its attendance; empty in a process with one host."""
        return self._proc_id if self._sharing.threads else ""

    def _make_locks(self) -> None:
        if self._sharing.threads:
            self.mutex, self.entry = allocate_lock(), Mutex()


def _is_whole(run: Run) -> bool:
    return run.is_entered and problem_of(run) is None
