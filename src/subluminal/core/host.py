"""The runs that one process takes part in, by id: usually one, several where calls name their own.

A stdio process is not a conversation: one server may serve several sessions of a client
(shared-runs).
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw, UnsetType

from subluminal.clock import now
from subluminal.config.places import Places, recordable
from subluminal.contracts.events import PolicyLoad, PolicyLoaded
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.limits import MAX_POLICY_EVENT_BYTES
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.controls.kill_switch import KillSwitch, Stop, is_run_stopped
from subluminal.core.enforcer import Enforcer
from subluminal.core.gates import Controls
from subluminal.core.policies.layer import Load
from subluminal.core.policies.watching import Policies
from subluminal.core.records.bugs import BugReports
from subluminal.core.records.listings import Definition, Listings, record_listing
from subluminal.core.records.previews import Previewer
from subluminal.core.runs.absent import AbsentJournal, AbsentState
from subluminal.core.runs.attendance import Attendance, forget_attendance, note_attendance
from subluminal.core.runs.ids import uuid7
from subluminal.core.runs.names import host_id, journal_dir
from subluminal.core.runs.run import Run
from subluminal.journal import Journal, JournalUnavailable
from subluminal.policy.snapshot import Snapshot
from subluminal.state.errors import StateUnusable
from subluminal.state.run_state import RunState

if TYPE_CHECKING:
    from subluminal.core.controls.approvals import Approvals

MAX_RUNS = 64
"""Sessions that one server process serves at once; past it, the oldest idle one is left."""

_MEND_EVERY_MS = 1_000
_CHECK_EVERY_MS = 250
"""How often a removed file of the kill switch is noticed, at most."""


class Runs:
    """Opens runs as calls name them, and hands out their enforcers."""

    def __init__(
        self,
        places: Places,
        identity: Identity,
        policies: Policies,
        previewer: Previewer,
        *,
        max_journal_bytes: int,
        is_busy: Callable[[Enforcer], bool] = lambda _enforcer: False,
    ) -> None:
        self._places = places
        self._identity = identity
        self._policies = policies
        self._previewer = previewer
        self._max_journal_bytes = max_journal_bytes
        self._host_id = host_id(places)
        self._proc_id = uuid7()
        self._open: dict[str, Enforcer] = {}
        self._left: list[Enforcer] = []
        self._partial: set[str] = set()
        self._mend_at_ms = 0
        self._loads: list[Load] = []
        self._news: list[Callable[[Run], object]] = []
        self._generation = policies.generation
        self._listings = Listings(previewer)
        self._bugs = BugReports(places)
        self.kill_switch = KillSwitch(places.state)
        self._no_run = self.kill_switch.view("", identity.agent_id)
        self._check_at_ms = 0
        self.is_busy = is_busy
        """whether calls are pending in a run, which then must not be left to make room"""

    def enforcer(self, run_id: str) -> Enforcer:
        """Returns the enforcer of a run, and enters the run if this process has not."""
        found = self._open.get(run_id)
        if found is None:
            self._make_room()
            found = self._enter(run_id)
        elif self._partial and run_id in self._partial:
            found = self._mended(run_id, found)
        return found

    def warm(self) -> None:
        """Loads what the first call needs, while nobody waits for it."""
        self._previewer.warm()

    @property
    def looked_at_bytes(self) -> int:
        """How much of a result is of use to `finish`; the rest is not recorded."""
        return self._previewer.looked_at_bytes

    def all(self) -> list[Enforcer]:
        """Every open run's enforcer."""
        return list(self._open.values())

    def tell(self, news: Callable[[Run], object]) -> None:
        """Records something in every open run, and in each that is entered later."""
        self._news.append(news)
        for enforcer in self._open.values():
            news(enforcer.run)

    def health(self, state: str, **fields: Any) -> None:
        """Records a step of the server's life in every run, also in those just left (no-orphans).
        """
        for enforcer in [*self._open.values(), *self._left]:
            enforcer.run.health(state, **fields)

    def list_tools(self, server_name: str, cursor: str, tools: Sequence[Definition] | None) -> None:
        """Records a page of the server's tools in every open run, if it is new.

        A run that is entered later gets it then.
        """
        listing = self._listings.changed(server_name, cursor, tools)
        if listing is not None:
            for enforcer in self._open.values():
                record_listing(enforcer.run, listing)

    def report_bug(self, bug: Exception) -> None:
        """Writes a report of a bug of ours, and says so in every run."""
        path = self._bugs.write(bug)
        if path is not None:
            self.health("degraded", detail=f"a bug in sub: {type(bug).__name__}, see `{path}`")

    def poll_policies(self, mono_ms: int, *, force: bool = False) -> None:
        """Takes over what changed in the policies, and records it in every open run."""
        if mono_ms >= self._check_at_ms:
            self._check_at_ms = mono_ms + _CHECK_EVERY_MS
            self.kill_switch.check()
        loads = self._policies.poll(mono_ms, force=force)
        if self._policies.generation != self._generation:
            self._take_over()
        if loads:
            self._loads = [*self._loads, *loads][-16:]
            for enforcer in self._open.values():
                record_loads(enforcer.run, loads)

    def adopt(self, previewer: Previewer, max_journal_bytes: int) -> None:
        """Goes over to other settings, in every run."""
        self._previewer.adopt(previewer)
        self._max_journal_bytes = max_journal_bytes
        for enforcer in self._open.values():
            enforcer.run.journal.rotate_at(max_journal_bytes)

    def hard_stop(self, server_name: str) -> Stop | None:
        """The stop that this server's process is under, in every run that it serves."""
        self.kill_switch.look()
        if not self.kill_switch.stops:
            return None
        views = [enforcer.controls.stops for enforcer in self._open.values()]
        found = [view.stops_server(server_name) for view in views or [self._no_run]]
        return found[0] if all(found) else None

    @property
    def is_loading(self) -> bool:
        """Whether a policy is awaited that has no older version in force."""
        return self._policies.loading

    def give_up_waiting(self) -> None:
        """Refuses calls, instead of holding them, until the policy is there."""
        self._policies.give_up_waiting()
        self._take_over()

    def flush(self) -> None:
        """Writes the ends of calls, and what had to be left out."""
        for enforcer in self._open.values():
            if enforcer.flush():
                enforcer.run.record_gap()

    def leave_all(self, failure: RunStatus | None) -> None:
        """Leaves every run; the last one out of a run ends it. Journals stay open until `close`."""
        for run_id in list(self._open):
            self._leave(run_id, failure)
        forget_attendance(self._places, os.getpid())

    def close(self) -> None:
        """Lets go of everything."""
        self._policies.close()
        for enforcer in self._left:
            enforcer.run.close()
        self._left.clear()
        self.kill_switch.close()

    def _enter(self, run_id: str) -> Enforcer:
        return self._entered(run_id, self._opened(run_id, self._state(run_id)))

    def _entered(self, run_id: str, enforcer: Enforcer) -> Enforcer:
        run = enforcer.run
        self._open[run_id] = enforcer
        run.enter(enforcer.engine.mode, enforcer.engine.policy)
        if not _is_whole(run):
            self._partial.add(run_id)
        attendance = Attendance(run_id, self._identity, run.source)
        note_attendance(self._places, os.getpid(), attendance)
        for news in self._news:
            news(run)
        record_loads(run, self._loads)
        self._listings.record_all(run)
        return enforcer

    def _opened(self, run_id: str, state: RunState) -> Enforcer:
        shim_id = uuid7()
        source = Source(host_id=self._host_id, proc_id=self._proc_id, shim_id=shim_id)
        run = Run(run_id, self._identity, source, state, self._journal(run_id, shim_id))
        agent_id = self._identity.agent_id
        run.is_stopped = lambda: is_run_stopped(self._places.state, run_id, agent_id)
        controls = Controls(
            self.kill_switch.view(run_id, agent_id), lambda: self._approvals_of(run)
        )
        engine = self._policies.engine_for(run_id)
        enforcer = Enforcer(run, engine, self._previewer, controls)
        enforcer.refusal = self._policies.refusal
        enforcer.on_bug = self.report_bug
        return enforcer

    def _approvals_of(self, run: Run) -> "Approvals":
        from subluminal.core.controls.approvals import Approvals

        return Approvals(self._places.state, run, self._previewer)

    def _state(self, run_id: str) -> RunState:
        try:
            return RunState.open(self._places.state, run_id)
        except StateUnusable as problem:
            return AbsentState(problem)

    def _journal(self, run_id: str, shim_id: str) -> Journal:
        try:
            return Journal(
                journal_dir(self._places, run_id), shim_id, max_bytes=self._max_journal_bytes
            )
        except JournalUnavailable as problem:
            return AbsentJournal(shim_id, problem)

    def _mended(self, run_id: str, found: Enforcer) -> Enforcer:
        """Tries again what failed when the run was entered."""
        mono_ms = now().mono_ms
        if mono_ms < self._mend_at_ms:
            return found
        self._mend_at_ms = mono_ms + _MEND_EVERY_MS
        run = found.run
        if isinstance(run.journal, AbsentJournal) or isinstance(run.state, AbsentState):
            return self._reopened(run_id) or found
        if run.enter(found.engine.mode, found.engine.policy):
            self._partial.discard(run_id)
        return found

    def _reopened(self, run_id: str) -> Enforcer | None:
        state = self._state(run_id)
        if isinstance(state, AbsentState):
            return None
        fresh = self._opened(run_id, state)
        if isinstance(fresh.run.journal, AbsentJournal):
            fresh.run.close()
            return None
        # Calls that are pending end in the old one.
        self._leave(run_id, None)
        return self._entered(run_id, fresh)

    def _make_room(self) -> None:
        if len(self._open) < MAX_RUNS:
            return
        idle = next((name for name, each in self._open.items() if not self.is_busy(each)), None)
        if idle is not None:
            self._leave(idle, None)
            left = self._left.pop()
            left.run.close()
            self.kill_switch.forget(left.controls.stops)
            self._policies.forget(idle)

    def _take_over(self) -> None:
        self._generation = self._policies.generation
        refusal = self._policies.refusal
        for run_id, enforcer in self._open.items():
            enforcer.engine = self._policies.engine_for(run_id)
            enforcer.refusal = refusal

    def _leave(self, run_id: str, failure: RunStatus | None) -> None:
        enforcer = self._open.pop(run_id)
        self._partial.discard(run_id)
        if enforcer.flush():
            enforcer.run.record_gap()
        enforcer.run.leave(failure)
        self._left.append(enforcer)


def _is_whole(run: Run) -> bool:
    return run.is_entered and not isinstance(run.journal, AbsentJournal)


def record_loads(run: Run, loads: list[Load]) -> None:
    """Says in a run which policies came into force, and which were refused."""

    def write() -> None:
        for load in loads:
            found = load.snapshot
            details = PolicyLoad(
                layer=load.layer,
                ok=found is not None,
                mode=UNSET if found is None else found.mode,
                file=recordable(load.path),
                problem=recordable(load.problem) or UNSET,
            )
            run.emit(
                PolicyLoaded,
                policy=UNSET if found is None else found.ref,
                load=details,
                snapshot=UNSET if found is None else _embedded(found),
            )

    run.record(write)


def _embedded(snapshot: Snapshot) -> Raw | UnsetType:
    text = snapshot.to_json()
    return Raw(text) if len(text) <= MAX_POLICY_EVENT_BYTES else UNSET
