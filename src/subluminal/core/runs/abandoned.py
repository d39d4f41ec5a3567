"""Closes what a process left open that died without a word: its part in each of its runs
(shared-runs, no-orphans).

Calls without an end stay without one: nobody knows how they ended.
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
"""For a lock that a stopped process holds; the warden waits twice as long for us."""

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_CLOCK_SLACK_S = 1.0

_RUN_END = b'"type":"run_end"'
_TAIL_BYTES = 65_536


def close_abandoned(places: Places, pid: int, reason: str) -> int:
    """Leaves every run that the process was in; returns how many of them ended with it."""
    ended = 0
    for left in attendances(places, pid):
        run = take_over(places, left)
        if run is None:
            continue
        if not _was_closed(run.journal.path):
            run.health("killed", pid=pid, detail=reason)
            ended += _leave(run, reason)
        run.close()
    forget_process(places, pid)
    return ended


def close_dead(places: Places) -> int:
    """Closes what any dead process left open, whoever notices first; returns how many runs ended.

    A warden that is just closing the same holds the journal, and is left to it.
    """
    return sum(close_one(places, pid) for pid in missing(places))


def missing(places: Places) -> list[int]:
    """Returns every process that is dead and left something open."""
    return [pid for pid in attending(places) if not _lives(places, pid)]


def close_one(places: Places, pid: int) -> int:
    """Closes what one of the missing left open; returns how many runs ended with it."""
    return close_abandoned(places, pid, f"process {pid} died without a word")


def _lives(places: Places, pid: int) -> bool:
    """Whether the process that noted its runs is still the one with this pid.

    It may have noted a run whose state it could not get at; then the times tell: whoever was born
    after the note did not write it.
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
        with RunState.open(places.state, left.run_id) as state:
            return any(
                shim.shim_id == left.source.shim_id and shim.pid == pid
                for shim in state.live_shims()
            )
    except StateUnusable:
        return True  # nobody can tell, so nobody is declared dead


def _was_closed(path: str) -> bool:
    """Whether the process died after its last word, before it could forget that it was there."""
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        return _RUN_END in file.read().rstrip(b"\n").rpartition(b"\n")[2]


def _leave(run: Run, reason: str) -> bool:
    """Detaches the dead. A run that another shim ended meanwhile did fail: the last end counts."""
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
            # Whoever holds the lock lives, and will be the last one out.
            if time.monotonic() > deadline:
                return False
    if is_last:
        run.record(lambda: end_run(run, RunStatus.FAILED, reason))
    return is_last
