"""Files that only their owner may read.

Their mode is checked whenever they are read, and is 0600 from the first byte when they are written.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from subluminal.config.places import make_private_dir
from subluminal.errors import SecretUnavailable

MAX_PRIVATE_BYTES = 16 << 20


def read_private(path: str) -> bytes | None:
    """Returns a file's bytes; None if it does not exist. Raises if another user could read it."""
    try:
        # Non-blocking, so that a FIFO in the file's place cannot delay the start of a server.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SecretUnavailable(f"cannot read `{path}`: {_reason(error)}") from None
    try:
        _refuse_exposed(path, os.fstat(fd))
        with open(fd, "rb", closefd=False) as file:
            return file.read(MAX_PRIVATE_BYTES)
    finally:
        os.close(fd)


def _refuse_exposed(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise SecretUnavailable(f"`{path}` is not a regular file")
    if found.st_mode & 0o077:
        raise SecretUnavailable(
            f"`{path}` can be read by others (mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"run `chmod 600 {path}`, and replace its secrets if others may have read them",
        )
    if found.st_uid not in (os.geteuid(), 0):
        raise SecretUnavailable(
            f"`{path}` belongs to another user", hint="only your own files, or root's, are trusted"
        )


def write_private(path: str, data: bytes) -> None:
    """Replaces a file atomically: a reader sees the old contents or the new."""
    make_private_dir(os.path.dirname(path))
    temporary = f"{path}.{os.getpid()}.new"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.replace(temporary, path)
    except OSError as error:
        raise SecretUnavailable(f"cannot write `{path}`: {_reason(error)}") from None


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Holds a lock that keeps other writers out while a file is read, changed and replaced."""
    make_private_dir(os.path.dirname(path))
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
