"""Opens runs: the one place where a `Run` is put together from its state, journal and source.

    open_run       opens a run that this process takes part in
    stand_in       makes a run without files, for a call that cannot wait until the run is open
    take_over      opens the run of a process that died, to close it in its place
    open_record    opens a journal beside a run, for what a person did to the run

A state or journal that cannot be opened is replaced by a stand-in that fails at every use. The
enforcer then applies `decision_on_error` to each call, as it does when a disk fills up.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from subluminal.config.places import Places
from subluminal.contracts.identity import Identity, Source
from subluminal.core.controls.sealed import KeyUnusable, seal_key
from subluminal.core.controls.stops import why_stopped
from subluminal.core.runs.attendance import Attendance
from subluminal.core.runs.names import host_id, journal_dir, uuid7
from subluminal.core.runs.run import Run, Turn
from subluminal.errors import SubluminalError
from subluminal.journal import Journal, JournalUnavailable
from subluminal.journal.chain import seed
from subluminal.journal.files import JournalBusy
from subluminal.journal.seals import beginning
from subluminal.state.errors import StateAbsent, StateUnusable
from subluminal.state.lock import RunLock
from subluminal.state.run_state import RunState, Total
from subluminal.state.storage import state_path
from subluminal.state.termination import Termination

if TYPE_CHECKING:
    from weakref import WeakSet

_NEVER_ROTATES_BYTES = 1 << 40
"""Rotation size of a journal that gets only a few lines."""


class Sharing(NamedTuple):
    """How the threads of this process share a run."""

    threads: bool = False
    """whether several threads, or several hosts of one process, use the run"""
    wait_ms: int | None = None
    """longest wait for a lock in ms; None for the default. An event loop sets its own bound."""


ALONE = Sharing()
"""One host and one thread: a stdio shim, or a command."""


class AbsentJournal(Journal):
    """A journal that could not be opened: accepts lines, and loses them at every flush."""

    def __init__(self, shim_id: str, problem: JournalUnavailable) -> None:
        self.problem = problem
        self._unwritten = []
        self.path = ""
        self.n = 1
        self.prev = seed(shim_id)
        self.lost = 0

    def flush(self) -> None:
        """Raises JournalUnavailable if there was anything to write."""
        if self._unwritten:
            self.lost += self._forget()
            raise self.problem

    def write_chained(self, lines: bytes, count: int, head: bytes) -> None:
        """Raises JournalUnavailable."""
        self.add_chained(lines, count, head)
        self.flush()

    def count_in(self, counter: memoryview, base: int, may_count: Callable[[], bool]) -> None:
        """Does nothing: there is no file."""
        counter.release()

    def rotate_at(self, max_bytes: int) -> None:
        """Does nothing: there is no file."""

    def drop(self) -> None:
        """Does nothing: there is no file."""

    def close(self) -> None:
        """Does nothing: there is no file."""


class AbsentState(RunState):
    """A state that could not be opened: counts nothing, and shares nothing with other shims."""

    def __init__(self, problem: StateUnusable) -> None:
        self.problem = problem
        self.path = problem.path

    def locked(self) -> RunLock:
        """Raises StateAbsent."""
        raise StateAbsent(self.problem)

    def _whole_words(self) -> memoryview:
        raise self.problem

    def owe(self, total: Total, amount: int = 1) -> None:
        """Does nothing: there are no totals."""

    def counter(self, _shim_id: str) -> None:
        """Returns None: there is no place to count events."""

    def terminated(self) -> Termination | None:
        """Returns None: without a state, nobody can tell."""
        return None

    def close(self) -> None:
        """Does nothing: there is no file."""


def open_run(
    places: Places,
    run_id: str,
    identity: Identity,
    *,
    machine_id: str,
    proc_id: str,
    max_journal_bytes: int,
    sharing: Sharing = ALONE,
    state: RunState | None = None,
) -> Run:
    """Opens a run for this process, under a new shim id. Uses stand-ins instead of failing."""
    shim_id = uuid7()
    key = _seal_key(places)
    # The state first: a run that has a journal and no state has lost its state (`lost_state`).
    state = state or open_state(places, run_id, sharing)
    journal = _journal(places, run_id, shim_id, max_journal_bytes, key)
    if sharing.threads:
        _drop_after_fork(journal)
    return Run(
        run_id,
        identity,
        Source(host_id=machine_id, proc_id=proc_id, shim_id=shim_id),
        state,
        journal,
        why_stopped=lambda: why_stopped(places.state, run_id, identity.agent_id),
        turn=Turn(journal, sharing.wait_ms) if sharing.threads else None,
        seal_key=key,
    )


def stand_in(run_id: str, identity: Identity, why: str) -> Run:
    """Returns a run without state or journal, for a call that cannot wait until it is open."""
    source = Source(host_id="", proc_id="", shim_id=uuid7())
    journal = AbsentJournal(source.shim_id, JournalUnavailable(run_id, why))
    return Run(run_id, identity, source, AbsentState(StateUnusable(run_id, why)), journal)


def problem_of(run: Run) -> SubluminalError | None:
    """Returns why the state or the journal of a run could not be opened; None if both were."""
    if isinstance(run.state, AbsentState):
        return run.state.problem
    return run.journal.problem if isinstance(run.journal, AbsentJournal) else None


def take_over(places: Places, left: Attendance) -> Run | None:
    """Opens a run under the shim id of a dead process; None if its journal cannot be used.

    Raises JournalBusy if the process lives after all, or if another process is closing its record.
    """
    # Threads of this process may be in the same run.
    state = open_state(places, left.run_id, Sharing(threads=True))
    key = _seal_key(places)
    try:
        journal = _short_journal(places, left.run_id, left.source.shim_id, key)
    except JournalBusy:
        state.close()
        raise
    except JournalUnavailable:
        state.close()
        return None
    agent_id = left.identity.agent_id
    run = Run(
        left.run_id,
        left.identity,
        left.source,
        state,
        journal,
        why_stopped=lambda: why_stopped(places.state, left.run_id, agent_id),
        seal_key=key,
    )
    run.count_events()
    return run


def open_record(places: Places, run_id: str, identity: Identity) -> Run:
    """Opens a journal beside a run without taking part in it. Raises JournalUnavailable."""
    shim_id, key = uuid7(), _seal_key(places)
    journal = _short_journal(places, run_id, shim_id, key)
    source = Source(host_id=host_id(places), proc_id=uuid7(), shim_id=shim_id)
    not_opened = AbsentState(StateUnusable(places.state, "it is not opened"))
    return Run(run_id, identity, source, not_opened, journal, seal_key=key)


def open_state(places: Places, run_id: str, sharing: Sharing) -> RunState:
    """Opens the state of a run. Returns a stand-in instead of failing, or of a lost state."""
    has_journals = os.path.isdir(journal_dir(places, run_id))
    has_state = not has_journals or os.path.lexists(state_path(places.state, run_id))
    try:
        return (_opened if has_state else _made_anew)(places, run_id, sharing)
    except StateUnusable as problem:
        return AbsentState(problem)


def _opened(places: Places, run_id: str, sharing: Sharing) -> RunState:
    threads, wait_ms = sharing
    return RunState.open(places.state, run_id, threads=threads, wait_ms=wait_ms)


def _made_anew(places: Places, run_id: str, sharing: Sharing) -> RunState:
    """Makes the state of a run that has journals. Raises StateUnusable, also for a lost state."""
    from subluminal.core.runs.lost_state import distrust, lost_state  # a new run does not need it

    lost = lost_state(places, run_id)
    if lost is not None:
        raise lost
    state = _opened(places, run_id, sharing)
    try:
        distrust(state, places, run_id)
    except StateUnusable:
        state.close()
        raise
    return state


_shared_journals: "WeakSet[Journal] | None" = None
"""The journals that threads of this process share; a forked child closes its copies of them."""


def _drop_after_fork(journal: Journal) -> None:
    global _shared_journals
    if _shared_journals is None:
        from weakref import WeakSet

        _shared_journals = WeakSet()
        os.register_at_fork(after_in_child=_drop_journals)
    _shared_journals.add(journal)


def _drop_journals() -> None:
    """In a forked child: closes journals that are the parent's, also one that was being opened."""
    for journal in list(_shared_journals or ()):
        journal.drop()


def _seal_key(places: Places) -> bytes | None:
    """Returns the key that seals journals; None if it cannot be used, and nothing is sealed."""
    try:
        return seal_key(places.state)
    except KeyUnusable:
        return None


def _begin(key: bytes | None, run_id: str, shim_id: str) -> bytes | None:
    return None if key is None else beginning(key, run_id, shim_id)


def _short_journal(places: Places, run_id: str, shim_id: str, key: bytes | None) -> Journal:
    """Opens a journal that gets only a few lines. Raises JournalUnavailable."""
    return Journal(
        journal_dir(places, run_id),
        shim_id,
        max_bytes=_NEVER_ROTATES_BYTES,
        reserve_bytes=0,
        beginning=_begin(key, run_id, shim_id),
    )


def _journal(
    places: Places, run_id: str, shim_id: str, max_bytes: int, key: bytes | None
) -> Journal:
    try:
        return Journal(
            journal_dir(places, run_id),
            shim_id,
            max_bytes=max_bytes,
            beginning=_begin(key, run_id, shim_id),
        )
    except JournalUnavailable as problem:
        return AbsentJournal(shim_id, problem)
