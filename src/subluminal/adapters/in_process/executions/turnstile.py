"""Who writes next: without this, a process that claims all the time would starve the others.

SQLite lets go of its file for a moment only, and a waiter that tries again now and then misses it.
So a process first enters the turnstile, then waits for the file, and leaves when it has it. Whoever
has just written must enter again, behind the one who waits inside.

This orders processes and protects nothing: SQLite's own locks do that. The kernel frees an flock(2)
when its process dies. A forked child drops the descriptor, which would share the parent's place.
"""

import fcntl
import os
import random
import time

_LOOK_S = (0.0005, 0.004)
"""Shortest and longest pause between two tries; at random, so that no process is always late."""


def pause() -> None:
    """Waits a moment before the next try."""
    time.sleep(random.uniform(*_LOOK_S))


class Turnstile:
    """The order in which processes write one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None

    def enter(self, deadline: float) -> bool:
        """Waits for the way to be free; returns False at the deadline. Raises OSError."""
        if self._fd is None:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
            else:
                return True
            pause()

    def leave(self) -> None:
        """Lets the next process in."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leaves, and closes the file; the next `enter` opens it again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
