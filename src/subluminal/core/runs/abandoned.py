"""Closes the runs of processes that died without closing them (shared-runs, no-orphans).

Calls that have no end stay without one: nobody knows how they ended.
"""

import os
import time

from subluminal.config.places import Places
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.runs.attendance import (
    Attendance,
    attendances,
    attending,
    forget_process,
    noted_at,
)
from subluminal.core.runs.opening import take_over
from subluminal.core.runs.run import Run, end_run
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.processes import start_time
from subluminal.state.run_state import RunState

_PATIENCE_S = 5.0
"""Longest wait for a lock that a stopped process holds; the warden waits twice as long for us."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_CLOCK_SLACK_S = 1.0

_RUN_END = b'"type":"run_end"'
_TAIL_BYTES = 65_536


def close_abandoned(places: Places, pid: int, reason: str) -> int:
    """Leaves every run that a dead process was in; returns how many runs ended thereby."""
    ended = 0
    for left in attendances(places, pid):
        run = take_over(places, left)
        if run is None:
            continue
        # A process that died before it entered the run may have left a run that never began.
        if run.state.started_at() is not None and not _was_closed(run.journal.path):
            run.health("killed", pid=pid, detail=reason)
            ended += _leave(run, reason)
        run.close()
    forget_process(places, pid)
    return ended


def close_dead(places: Places) -> int:
    """Closes the runs of every dead process; returns how many runs ended.

    Several processes may try this at once: the one that holds a journal closes its run, the others
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
    ticks = start_time(pid)
    if ticks is None:
        return False
    born_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / _TICKS_PER_S
    if born_s <= noted_at(places, pid) + _CLOCK_SLACK_S:
        return True
    return any(_takes_part(places, left, pid) for left in attendances(places, pid))


def _takes_part(places: Places, left: Attendance, pid: int) -> bool:
    try:
        with RunState.open(places.state, left.run_id, threads=True) as state:
            return any(
                shim.shim_id == left.source.shim_id and shim.pid == pid
                for shim in state.live_shims()
            )
    except StateUnusable:
        return True  # unknown: a process that may be alive is never declared dead


def _was_closed(path: str) -> bool:
    """Returns True if a journal ends with run_end: its process died only after closing the run."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        return _RUN_END in file.read().rstrip(b"\n").rpartition(b"\n")[2]


def _leave(run: Run, reason: str) -> bool:
    """Detaches a dead process from a run; returns True if that ended the run.

    If another shim has ended the run meanwhile, it is ended again as FAILED: the last end counts.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with run.state.locked():
                run.state.note_failure(RunStatus.FAILED)
                is_last = run.state.detach(run.shim_id) == 0
                if is_last:
                    run.state.mark_ended()
            break
        except StateBusy:
            # The process that holds the lock is alive, and will end the run when it leaves.
            if time.monotonic() > deadline:
                return False
    if is_last:
        run.record(lambda: end_run(run, RunStatus.FAILED, reason))
    return is_last
