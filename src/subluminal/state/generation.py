"""A number that all processes of a home share, and that changes whenever other shared state does.

A process that depends on that state compares two integers before every call, and reads the state
again only when they differ.
"""

import fcntl
import mmap
import os
import struct
import time

from subluminal.config.places import make_private_dir
from subluminal.system.files import allocate

_WORD = struct.Struct("=q")
WORD_BYTES = _WORD.size
"""Size of the file."""
_seek, _END = os.lseek, os.SEEK_END
_PATIENCE_S = 1.0
_PAUSE_S = 0.001


class Generation:
    """One process's view of the number: reading `words[0]` is a single load, without a lock."""

    def __init__(self, path: str) -> None:
        """Opens the file, and creates it if it does not exist.

        Raises OSError, also while another process makes the same file.
        """
        self.path = path
        make_private_dir(os.path.dirname(path))
        # We never make a symbolic link here, so we do not follow one.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o600)
        try:
            if os.fstat(fd).st_size < _WORD.size:
                # Another process may be storing the first number. It may also be suspended, so
                # nobody waits for it: the caller tries again before the next call.
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                allocate(fd, 0, _WORD.size)
                fcntl.lockf(fd, fcntl.LOCK_UN)
            self._data = mmap.mmap(fd, _WORD.size)
            self._identity = _identity(os.fstat(fd))
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd
        self.words = memoryview(self._data).cast("q")

    def is_whole(self) -> bool:
        """Whether nobody has cut the file. Reading the number of a cut file would be a SIGBUS."""
        return _seek(self.fd, 0, _END) >= WORD_BYTES

    def is_current(self) -> bool:
        """Whether the path still leads to this file. A removed file no longer receives changes."""
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        return _identity(there) == self._identity and there.st_size >= _WORD.size

    def __del__(self) -> None:
        """Closes the descriptor. The mapping stays as long as a thread reads the number."""
        if (fd := getattr(self, "fd", -1)) >= 0:
            os.close(fd)


def move(path: str) -> int:
    """Stores a number that the file never held before, and returns it. Raises OSError."""
    make_private_dir(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _await_turn(fd)
        allocate(fd, 0, _WORD.size)
        number = max(_read(fd) + 1, time.time_ns())
        with mmap.mmap(fd, _WORD.size) as data:
            words = memoryview(data).cast("q")
            words[0] = number
            words.release()
        return number
    finally:
        os.close(fd)


def _await_turn(fd: int) -> None:
    """Waits for a process that is storing a number, for _PATIENCE_S at most.

    A stop must not wait for a process that is suspended. Without the lock two numbers still differ,
    as the times do at which they were made.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_PAUSE_S)


def _read(fd: int) -> int:
    number: int = _WORD.unpack(os.pread(fd, _WORD.size, 0))[0]
    return number


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
