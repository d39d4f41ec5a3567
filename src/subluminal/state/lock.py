"""The lock of a run: a POSIX record lock on its state file, waited for at most 50 ms (shared-runs).

A holder that waits for a CPU is not a stopped one: on a machine that is overrun it is given more.

A record lock belongs to the process. The kernel frees it when the process dies, however it dies,
and a forked child does not inherit it: with flock(2) a child would keep its dead parent's lock, and
would not exclude a living one. The price: closing *any* descriptor of the file frees it, and it
does not exclude threads of one process, so a process opens a run once and uses it from one thread.

Only a waiter that sleeps in the kernel is served in order, and that wait cannot be bounded without
a signal. So waiters try again and again, and one that fails for long writes its pid into the file:
the others then let it go first. It is a courtesy: wrong or lost, it costs two milliseconds.
"""

import fcntl
import os
import struct
import time

from subluminal.state.errors import StateBusy
from subluminal.state.layout import W_WANTED
from subluminal.state.processes import is_starved
from subluminal.state.storage import StateFile

LOCK_WAIT_MS = 50
"""Far above any honest hold (tens of microseconds), far below what a client notices."""
STARVED_WAIT_MS = 10_000
"""For a holder that would go on if it had a CPU. A hundred runs on two of them need it."""

_PAUSE_S = 0.00005
_STARVED_PAUSE_S = 0.001
"""What waits for a CPU gets none sooner by others asking."""
_PATIENCE_S = 0.0005
"""How long a waiter tries before it asks to go first."""
_MAX_COURTESIES = 20
"""Pauses, of about 0.1 ms each, for a process that asked to go first and may be dead."""

_lockf = fcntl.lockf
_TRY = fcntl.LOCK_EX | fcntl.LOCK_NB
_FREE = fcntl.LOCK_UN
_FLOCK = struct.Struct("hhqqi")
"""fcntl(2)'s `struct flock`: type, whence, start, length, pid."""
_ASK = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class RunLock:
    """A context manager, not re-entrant. `held` says whether this process is inside."""

    __slots__ = ("_fd", "_path", "_words", "absent", "held")

    def __init__(self, file: StateFile) -> None:
        self._fd = file.fd
        self._path = file.path
        self._words = file.words
        self.held = False
        self.absent: dict[bytes, int] = {}
        """recent keys that were looked for in vain since the lock is held, each with the end of
        its chain: no other process adds them until it is let go"""

    def __enter__(self) -> None:
        if self.held:
            raise RuntimeError("the lock of a run is not re-entrant")
        if self._words[W_WANTED]:
            self._wait()
        else:
            try:
                _lockf(self._fd, _TRY)
            except BlockingIOError:
                self._wait()
        if self.absent:
            self.absent.clear()
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False
        _lockf(self._fd, _FREE)

    def require(self) -> None:
        """Raises if a change is about to be made outside of the lock: a bug of the caller."""
        if not self.held:
            raise RuntimeError("the state of a run is changed only under its lock")

    def _try(self) -> bool:
        try:
            _lockf(self._fd, _TRY)
        except BlockingIOError:
            return False
        return True

    def _wait(self) -> None:
        words, own_pid = self._words, os.getpid()
        began, first, courtesies = time.monotonic(), 0, 0
        # On a single CPU the holder needs ours to finish.
        os.sched_yield()
        try:
            while True:
                if words[W_WANTED] != first:
                    first, courtesies = words[W_WANTED], 0
                may_try = first in (0, own_pid)
                if may_try and self._try():
                    return
                courtesies += not may_try
                waited = time.monotonic() - began
                if waited >= LOCK_WAIT_MS / 1000:
                    if self._try():  # courtesy ends where a decision would fail for it
                        return
                    if waited >= STARVED_WAIT_MS / 1000 or self._is_stuck():
                        raise StateBusy(self._path, LOCK_WAIT_MS)
                    time.sleep(_STARVED_PAUSE_S)
                if courtesies >= _MAX_COURTESIES or (may_try and waited >= _PATIENCE_S):
                    words[W_WANTED] = own_pid
                time.sleep(_PAUSE_S)
        finally:
            if words[W_WANTED] == own_pid:
                words[W_WANTED] = 0

    def _is_stuck(self) -> bool:
        """Whether whoever holds the lock would keep it even with a CPU of its own."""
        holder = self._holder()
        # One that let go while we looked at it may well sleep by now.
        return holder is not None and not is_starved(holder) and self._holder() == holder

    def _holder(self) -> int | None:
        """The pid of who holds the lock; 0 if that is out of sight; None if nobody does."""
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_GETLK, _ASK))
        return None if kind == fcntl.F_UNLCK else pid
