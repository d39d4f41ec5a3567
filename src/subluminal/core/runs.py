"""The runs that one process takes part in, by id: usually one, several where calls name their own.

A stdio process is not a conversation: one server may serve several sessions of a client (D4).
"""

import os

from msgspec import UNSET

from subluminal.config.places import Places, encode_name, make_private_dir
from subluminal.contracts.events import PolicyLoad, PolicyLoaded
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.attendance import Attendance, forget_attendance, note_attendance
from subluminal.core.enforcer import Enforcer
from subluminal.core.ids import uuid7
from subluminal.core.policies import Load, Policies
from subluminal.core.previews import Previewer
from subluminal.core.run import Run
from subluminal.journal import Journal
from subluminal.state.run_state import RunState

_MAX_RUNS = 64
"""Sessions that one server process serves at once; past it, the oldest is left."""


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
    ) -> None:
        self._places = places
        self._identity = identity
        self._policies = policies
        self._previewer = previewer
        self._max_journal_bytes = max_journal_bytes
        self._host_id = _host_id(places)
        self._proc_id = uuid7()
        self._open: dict[str, Enforcer] = {}
        self._loads: list[Load] = []

    def enforcer(self, run_id: str) -> Enforcer:
        """Returns the enforcer of a run, and enters the run if this process has not."""
        found = self._open.get(run_id)
        if found is None:
            if len(self._open) >= _MAX_RUNS:
                oldest = next(iter(self._open))
                self._leave(self._open.pop(oldest), None)
            self._open[run_id] = found = self._enter(run_id)
        return found

    def all(self) -> list[Enforcer]:
        """Every open run's enforcer."""
        return list(self._open.values())

    def poll_policies(self, mono_ms: int, *, force: bool = False) -> None:
        """Takes over what changed in the policies, and records it in every open run."""
        loads = self._policies.poll(mono_ms, force=force)
        if loads:
            self._record(loads)

    @property
    def is_loading(self) -> bool:
        """Whether a policy is awaited that has no older version in force."""
        return self._policies.loading

    def give_up_waiting(self) -> None:
        """Refuses calls, instead of holding them, until the policy is there."""
        self._policies.give_up_waiting()
        for enforcer in self._open.values():
            self._take_over(enforcer)

    def _record(self, loads: list[Load]) -> None:
        self._loads = [*self._loads, *loads][-16:]
        for enforcer in self._open.values():
            self._take_over(enforcer)
            _record_loads(enforcer.run, loads)

    def leave_all(self, failure: RunStatus | None) -> None:
        """Leaves every run; the last one out of a run ends it."""
        for enforcer in self._open.values():
            self._leave(enforcer, failure)
        self._open.clear()
        forget_attendance(self._places, os.getpid())

    def _enter(self, run_id: str) -> Enforcer:
        shim_id = uuid7()
        state = RunState.open(self._places.state, run_id)
        self._policies.pin(os.path.join(self._places.state, "pins", encode_name(run_id)))
        journal = Journal(
            journal_dir(self._places, run_id), shim_id, max_bytes=self._max_journal_bytes
        )
        source = Source(host_id=self._host_id, proc_id=self._proc_id, shim_id=shim_id)
        note_attendance(self._places, os.getpid(), Attendance(run_id, self._identity, source))
        run = Run(run_id, self._identity, source, state, journal)
        enforcer = Enforcer(run, self._policies.engine, self._previewer)
        self._take_over(enforcer)
        run.enter(enforcer.engine.mode, enforcer.engine.policy)
        _record_loads(run, self._loads)
        return enforcer

    def _take_over(self, enforcer: Enforcer) -> None:
        enforcer.engine = self._policies.engine
        enforcer.refusal = self._policies.refusal

    def _leave(self, enforcer: Enforcer, failure: RunStatus | None) -> None:
        enforcer.flush()
        enforcer.run.leave(failure)
        enforcer.run.close()


def journal_dir(places: Places, run_id: str) -> str:
    """Where the journals of a run are."""
    return os.path.join(places.journal, encode_name(run_id))


def _record_loads(run: Run, loads: list[Load]) -> None:
    def write() -> None:
        for load in loads:
            found = load.snapshot
            details = PolicyLoad(
                layer=load.layer,
                ok=found is not None,
                mode=UNSET if found is None else found.mode,
                file=load.path,
                problem=load.problem or UNSET,
            )
            run.emit(PolicyLoaded, policy=UNSET if found is None else found.ref, load=details)

    run.record(write)


def _host_id(places: Places) -> str:
    """This machine's id, made once per home."""
    path = os.path.join(make_private_dir(places.state), "host_id")
    # Linked into place whole, so that nobody reads half an id.
    if not os.path.exists(path):
        aside = f"{path}.{os.getpid()}"
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(uuid7())
        try:
            os.link(aside, path)
        except FileExistsError:
            pass  # another process was first
        finally:
            os.unlink(aside)
    with open(path, encoding="ascii") as file:
        return file.read().strip()
