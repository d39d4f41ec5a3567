"""Facts about other processes: whether they live, since when, and whether they wait.

The start time distinguishes a process from a later one with the same pid.
"""

import os

from subluminal.system import LINUX
from subluminal.system.process import exists
from subluminal.system.processes import born_at, may_go_on, process

_UNKNOWN = 0


def start_time(pid: int) -> int | None:
    """Returns when a living process started, in the system's own unit; None if it is dead.

    A zombie counts as dead: it only waits for its parent. 0 is a living process that the system
    hides from us.
    """
    found = process(pid)
    if found is None:
        return _UNKNOWN if exists(pid) else None
    return None if found.is_dead else found.start


def is_same(pid: int, start: int) -> bool:
    """Returns True if the process that had this pid and start time lives. Quick: needs no `ps`.

    This is asked under the lock of a run, so without /proc only the pid of another process is
    compared. If it belongs to a later process or a zombie, `core.runs.abandoned` finds out, and
    ends the run.
    """
    return start_time(pid) == start if LINUX or pid == os.getpid() else exists(pid)


def started_at(pid: int) -> float | None:
    """Returns when a living process started, in seconds since 1970; None if it is dead.

    0 is a living process that the system hides from us.
    """
    found = process(pid)
    if found is None:
        return float(_UNKNOWN) if exists(pid) else None
    return None if found.is_dead else born_at(found)


def is_starved(pid: int) -> bool:
    """Returns True if a process, or one of its threads, will go on as soon as it has a CPU."""
    return may_go_on(pid)
