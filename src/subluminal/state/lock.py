"""The lock of a run: each decision of the run is one step under it, in every process (shared-runs).

How it works:

1. The lock is a POSIX record lock on the run's state file. It belongs to the process: the kernel
   frees it when the process dies, however it dies, and a forked child does not inherit it. (With
   flock(2) a child would keep its dead parent's lock.)
2. Closing *any* descriptor of the file frees the lock. So a process opens a state file once, and
   everybody in the process shares the descriptor (`storage.StateFile`).
3. A record lock does not exclude threads of one process. `ThreadedRunLock` takes the file's mutex
   first; `RunLock` is for a process with one thread, such as a stdio shim, and takes no mutex.
4. Waiting is bounded. A waiter tries again and again for 50 ms, then raises StateBusy, unless the
   holder only waits for a CPU: then it waits for up to 10 s. A caller that must not wait that long,
   such as an event loop, chooses its own bound, and that bound is final.
5. Retrying is not fair: only a waiter that sleeps in the kernel is served in order, and that sleep
   cannot be bounded without a signal. A waiter that fails for half a millisecond therefore writes
   its pid into the file, and the others let it go first. If the pid is wrong or its process is
   dead, the others lose two milliseconds.
6. Whoever takes the lock checks that nobody has cut or overwritten the file, and raises
   StateUnusable: reading beyond the end of a mapped file would be a SIGBUS, and end the process.
"""

import fcntl
import os
import time

from subluminal.state.errors import StateBusy
from subluminal.state.layout import MAGIC, W_MAGIC, W_WANTED
from subluminal.state.processes import is_starved
from subluminal.state.storage import FILE_BYTES, StateFile
from subluminal.system.files import lock_holder

LOCK_WAIT_MS = 50
"""Longest wait by default: far above a normal hold (tens of microseconds), too short to notice."""
STARVED_WAIT_MS = 10_000
"""Longest wait for a holder that only needs a CPU: a hundred runs on two CPUs take this long."""

_PAUSE_S = 0.00005
"""Pause between two tries."""
_STARVED_PAUSE_S = 0.001
"""Additional pause while the holder waits for a CPU: more tries would only slow it down."""
_PATIENCE_S = 0.0005
"""How long a waiter tries before it asks to go first."""
_MAX_COURTESIES = 20
"""Most pauses, of about 0.1 ms each, for a process that asked to go first and may be dead."""

_lockf = fcntl.lockf
_seek = os.lseek
_END = os.SEEK_END
_TRY = fcntl.LOCK_EX | fcntl.LOCK_NB
_FREE = fcntl.LOCK_UN


class RunLock:
    """The lock for a process with one thread: a context manager, not re-entrant.

    `wait_ms` is the caller's own bound for a wait; None is the default of 50 ms, or up to 10 s
    while the holder waits for a CPU.
    """

    __slots__ = ("_bound_s", "_fd", "_file", "_path", "_starved_s", "_words", "absent", "held")

    def __init__(self, file: StateFile, wait_ms: int | None = None) -> None:
        self._file = file
        self._fd = file.fd
        self._path = file.path
        self._words = file.words
        self._bound_s = (LOCK_WAIT_MS if wait_ms is None else wait_ms) / 1000
        self._starved_s = STARVED_WAIT_MS / 1000 if wait_ms is None else self._bound_s
        self.held = False
        """whether this process holds the lock"""
        self.absent: dict[bytes, int] = {}
        """keys that were not found since the lock was taken, each with the end of its chain; no
        other process can add them until the lock is released"""

    def __enter__(self) -> None:
        if self.held:
            raise RuntimeError("the lock of a run is not re-entrant")
        # This is StateFile.is_whole, inlined: every call passes here.
        if _seek(self._fd, 0, _END) != FILE_BYTES or self._words[W_MAGIC] != MAGIC:
            raise self._file.harm()
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
        """Raises RuntimeError if the lock is not held: the caller has a bug."""
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
        # On a machine with one CPU, the holder needs it to finish.
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
                if waited >= self._bound_s:
                    if self._try():  # taking another's turn is better than failing a decision
                        return
                    if waited >= self._starved_s or self._is_stuck():
                        raise StateBusy(self._path, round(self._bound_s * 1000))
                    time.sleep(_STARVED_PAUSE_S)
                if courtesies >= _MAX_COURTESIES or (may_try and waited >= _PATIENCE_S):
                    words[W_WANTED] = own_pid
                time.sleep(_PAUSE_S)
        finally:
            if words[W_WANTED] == own_pid:
                words[W_WANTED] = 0

    def _is_stuck(self) -> bool:
        """Returns True if the holder waits for something other than a CPU."""
        holder = lock_holder(self._fd)
        # The holder may have released the lock and gone to sleep meanwhile, so it is read again.
        return holder is not None and not is_starved(holder) and lock_holder(self._fd) == holder


class ThreadedRunLock(RunLock):
    """The same lock for a process with several threads, or with several hosts of one run."""

    __slots__ = ("_mutex",)

    def __init__(self, file: StateFile, wait_ms: int | None = None) -> None:
        super().__init__(file, wait_ms)
        self._mutex = file.mutex

    def __enter__(self) -> None:
        # `Mutex.acquire` and `RunLock.__enter__`, inlined: every call passes here.
        lock = self._mutex.lock
        if lock._is_owned():  # type: ignore[attr-defined]
            self.__exit__()  # an interrupt ended this thread's last turn too early
        try:
            # The mutex' holder may itself wait for a starved process, so the long bound applies.
            if not (lock.acquire(False) or lock.acquire(True, self._starved_s)):
                raise StateBusy(self._path, round(self._starved_s * 1000))
            self.held = False
            RunLock.__enter__(self)
        except BaseException:
            if lock._is_owned():  # type: ignore[attr-defined]
                self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self.held = False
            _lockf(self._fd, _FREE)
        finally:
            lock = self._mutex.lock
            if lock._is_owned():  # type: ignore[attr-defined]
                lock.release()
