"""Completes the record of processes that died: ends of calls, run_end (shared-runs, no-orphans).

Whoever finds a dead process does this: its warden, the next shim of the run, ledgerd, or a command.
The events go to the dead process' own journal and continue its chain.
"""

import time

from msgspec import UNSET

from subluminal.config.places import Places
from subluminal.contracts.events import Health, ShimHealth
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.runs.attendance import (
    Attendance,
    attendances,
    attending,
    forget_process,
    noted_at,
)
from subluminal.core.runs.ending import end_run
from subluminal.core.runs.handed_calls import HandedCalls
from subluminal.core.runs.left_calls import LeftBehind, end_calls, read_left
from subluminal.core.runs.names import journal_dir
from subluminal.core.runs.opening import problem_of, take_over
from subluminal.core.runs.run import Run
from subluminal.counts import counted
from subluminal.journal.files import JournalBusy
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.processes import started_at
from subluminal.state.run_state import RunState

_PATIENCE_S = 5.0
"""Longest wait for a lock that a stopped process holds; the warden waits twice as long for us."""

_CLOCK_SLACK_S = 1.0
_LATER_S = 0.002
"""More than the millisecond in which two timestamps can be equal."""


def close_abandoned(places: Places, pid: int, reason: str) -> int:
    """Leaves every run that a dead process was in; returns how many runs ended thereby.

    The note of the process stays until its record is complete. Whoever is killed on the way, the
    next process that finds the note goes on.
    """
    ended, is_done = 0, True
    for left in attendances(places, pid):
        try:
            run = take_over(places, left)
        except JournalBusy:
            is_done = False
            continue
        if run is None:
            continue
        try:
            ended += _close(places, run, pid, reason)
        except _TryAgain:
            is_done = False
        finally:
            run.close()
    if is_done:
        forget_process(places, pid)
    return ended


class _TryAgain(Exception):
    """The record of a dead process could not be completed now."""


def _close(places: Places, run: Run, pid: int, reason: str) -> bool:
    """Completes the record of a dead process; returns True if that ended the run.

    INVARIANT: the caller holds the lock of the journal, so one process at a time does this. Each
    step may be done again by the next process, if this one is killed: ends that are written are
    found in the journal, `count_lost` counts a shim once, and the last line says that all is done.
    """
    directory = journal_dir(places, run.run_id)
    left = read_left(directory, run.shim_id)
    handed = HandedCalls(places, run, directory)
    handed.sort_out(left)
    has_state = problem_of(run) is None
    if left.is_closed:
        handed.forget()
        return False
    # A process that died before it entered the run may have left a run that never began.
    if has_state and run.state.started_at() is None:
        return False
    if left.open and not run.record(lambda: end_calls(run, left)):
        raise _TryAgain
    told = _told(reason, left)
    # Without its state, nobody knows the totals of the run, or who else is in it.
    is_last = has_state and _detach(run, left, told)

    def write() -> None:
        # If the run ends, run_end is the last line. Otherwise `calls_open` marks the last line.
        mark = UNSET if is_last else left.calls_lost
        run.emit(ShimHealth, health=Health(state="killed", pid=pid, detail=told, calls_open=mark))
        if is_last:
            end_run(run, reason=told)

    if not run.record(write):
        raise _TryAgain
    handed.forget()
    return is_last


def _told(reason: str, left: LeftBehind) -> str:
    """Returns the reason, with the server and the number of calls in flight."""
    if left.server_name is None and not left.calls_lost:
        return reason
    flying = counted(left.calls_lost, "call") if left.calls_lost else "no call"
    where = f" to server `{left.server_name}`" if left.server_name else ""
    return f"{reason} with {flying} in flight{where}"


def _has_failed(left: LeftBehind) -> bool:
    """Returns True if the death of a process fails its run.

    A shim without a call in flight has lost nothing. Some clients end their servers that way: one
    kills them half a millisecond after SIGTERM (shared-runs).
    """
    return left.calls_lost > 0 or left.server_name is None


def close_dead(places: Places) -> int:
    """Closes the runs of every dead process; returns how many runs ended.

    Several processes may try this at once: the one that holds a journal completes it, the others
    skip it.
    """
    return sum(close_one(places, pid) for pid in missing(places))


def missing(places: Places) -> list[int]:
    """Returns the pid of every dead process that left a run open."""
    return [pid for pid in attending(places) if not _lives(places, pid)]


def close_one(places: Places, pid: int) -> int:
    """Closes the runs of one dead process; returns how many runs ended."""
    return close_abandoned(places, pid, f"process {pid} died without closing its runs")


def _lives(places: Places, pid: int) -> bool:
    """Returns True if the process with this pid is the one that noted its runs under it.

    A process that started after the note was written did not write it: the pid was reused. Clocks
    may be set, so a run's state is asked too.
    """
    born_s = started_at(pid)
    if born_s is None:
        return False
    if born_s <= noted_at(places, pid) + _CLOCK_SLACK_S:
        return True
    return any(_takes_part(places, left, pid) for left in attendances(places, pid))


def _takes_part(places: Places, left: Attendance, pid: int) -> bool:
    try:
        with RunState.open(places.state, left.run_id, threads=True, create=False) as state:
            return any(
                shim.shim_id == left.source.shim_id and shim.pid == pid
                for shim in state.live_shims()
            )
    except StateUnusable:
        return True  # unknown: a process that may be alive is never declared dead


def _detach(run: Run, left: LeftBehind, reason: str) -> bool:
    """Detaches a dead process from a run; returns True if no process is left in the run.

    If another shim has ended the run meanwhile, it is ended again: the last end counts. Timestamps
    have milliseconds, so the second end waits until it has a later one.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with run.state.locked():
                if _has_failed(left):
                    run.state.note_failure(RunStatus.FAILED, reason)
                run.state.note_server(worked=left.worked)
                run.state.count_lost(run.shim_id, left.calls_lost)
                is_last = run.state.detach(run.shim_id) == 0
                is_first_end = is_last and run.state.mark_ended()
            if is_last and not is_first_end:
                time.sleep(_LATER_S)
            return is_last
        except StateUnusable:
            return False  # the state was damaged: nobody knows who takes part in the run
        except StateBusy:
            if time.monotonic() > deadline:
                raise _TryAgain from None
