"""The lock of a run: a POSIX record lock on its state file, waited for at most 50 ms (D4).

A record lock belongs to the process. The kernel frees it when the process dies, however it dies,
and a forked child does not inherit it: with flock(2) a child would keep its dead parent's lock, and
would not exclude a living one. The price: closing *any* descriptor of the file frees it, and it
does not exclude threads of one process, so a process opens a run once and uses it from one thread.
"""

import fcntl
import os
import time

from subluminal.state.errors import StateBusy

LOCK_WAIT_MS = 50
"""Far above any honest hold (tens of microseconds), far below what a client notices."""

_FIRST_PAUSE_S = 0.00005
_LAST_PAUSE_S = 0.0005
"""Short, so that a hundred tries fit into the bound and nobody starves in a crowd."""

_TRY = fcntl.LOCK_EX | fcntl.LOCK_NB


class RunLock:
    """A context manager, not re-entrant. `held` says whether this process is inside."""

    __slots__ = ("_fd", "_path", "held")

    def __init__(self, fd: int, path: str) -> None:
        self._fd = fd
        self._path = path
        self.held = False

    def __enter__(self) -> None:
        if self.held:
            raise RuntimeError("the lock of a run is not re-entrant")
        try:
            fcntl.lockf(self._fd, _TRY)
        except BlockingIOError:
            self._wait()
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False
        fcntl.lockf(self._fd, fcntl.LOCK_UN)

    def require(self) -> None:
        """Raises if a change is about to be made outside of the lock: a bug of the caller."""
        if not self.held:
            raise RuntimeError("the state of a run is changed only under its lock")

    def _wait(self) -> None:
        deadline = time.monotonic() + LOCK_WAIT_MS / 1000
        pause = _FIRST_PAUSE_S
        # On a single CPU the holder needs ours to finish.
        os.sched_yield()
        while True:
            try:
                fcntl.lockf(self._fd, _TRY)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StateBusy(self._path, LOCK_WAIT_MS) from None
            time.sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE_S)
