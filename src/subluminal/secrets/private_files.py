"""Files that only their owner may read: checked when read, 0600 from the first byte when written.

Knows nothing of what is in them.
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
    """Returns a file's bytes; None if there is none. Raises if anyone else could read it."""
    try:
        # Non-blocking: a FIFO in the file's place must not hold up a server's start.
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
        raise SecretUnavailable(f"`{path}` is not a file")
    if found.st_mode & 0o077:
        raise SecretUnavailable(
            f"`{path}` can be read by others (mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"`chmod 600 {path}`, and consider what is in it as known",
        )
    if found.st_uid not in (os.geteuid(), 0):
        raise SecretUnavailable(f"`{path}` belongs to another user")


def write_private(path: str, data: bytes) -> None:
    """Replaces a file as a whole: a reader sees the old one or the new one."""
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
    """Keeps other writers of a file out while one of them reads, changes and replaces it."""
    make_private_dir(os.path.dirname(path))
    fd = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
