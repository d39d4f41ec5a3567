"""Closes the doors that a program leaves open when its interpreter ends.

Without this, a program that forgets `close` would leave runs that end only when somebody finds its
process dead. A run with calls under way is not left: these calls belong to threads that die with
the process, and whoever finds the process dead ends them with their run, as after a kill.
"""

import atexit
import os
import sys
from typing import Protocol


class Door(Protocol):
    """A door that can be left open."""

    def leave_at_exit(self) -> None:
        """Leaves every run that has no call under way."""


_open: dict[int, Door] = {}
"""the doors that are open, by identity"""


def close_at_exit(door: Door) -> None:
    """Closes a door when the interpreter ends, unless it was closed before."""
    _open[id(door)] = door


def forget(door: Door) -> None:
    """Forgets a door that was closed."""
    _open.pop(id(door), None)


def _close_all() -> None:
    while _open:
        _, door = _open.popitem()
        door.leave_at_exit()


def _after_fork() -> None:
    """In a forked child of `multiprocessing`: such a child ends without `atexit`."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and _open:
        # The child clears its finalizers first, and then calls this.
        util.register_after_fork(_close_all, _finalize)


def _finalize(close_all: object) -> None:
    sys.modules["multiprocessing.util"].Finalize(None, close_all, exitpriority=-100)


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
