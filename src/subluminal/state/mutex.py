"""Locks between the threads of one process: one that an interrupt cannot leave held, and none.

A signal handler may raise between any two steps of Python code: Ctrl-C, a timeout by alarm(2). Such
an exception can end a thread's turn before the lock is released. The lock therefore knows its
owner, and the owner's next `acquire` takes it over. It is not re-entrant: a thread never starts a
turn inside a turn.
"""

from _thread import RLock  # `threading` would cost a shim's start a millisecond


class Mutex:
    """One lock. After an interrupt, `acquire` and `release` may be called in any order."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = RLock()
        """what `acquire` takes; for code on the path of every call, which does the same itself"""

    def acquire(self, timeout: float) -> bool:
        """Takes the lock; returns False if it is not free within `timeout` seconds."""
        lock = self.lock
        while lock._is_owned():  # type: ignore[attr-defined]
            lock.release()
        return lock.acquire(True, timeout)

    def release(self) -> None:
        """Releases the lock, if this thread holds it."""
        if self.lock._is_owned():  # type: ignore[attr-defined]
            self.lock.release()

    def renew(self) -> None:
        """Makes a new lock in a forked child: a thread of the parent may have held the old one."""
        self.lock = RLock()


class Unshared:
    """The stand-in for a lock where only one thread uses what the lock is for."""

    def acquire(self, _timeout: float) -> bool:
        """Returns True."""
        return True

    def release(self) -> None:
        """Does nothing."""

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return


UNSHARED = Unshared()
