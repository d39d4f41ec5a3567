"""Files: disk blocks before they are needed, files without a name, exchange, locks."""

import errno
import fcntl
import os
import struct
import sys

from subluminal.system import LINUX

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_PIECE_BYTES = 65_536
# fcntl(2)'s `struct flock` has the same fields everywhere, but not in the same order.
_ON_LINUX = sys.platform.startswith("linux")
_FLOCK = struct.Struct("hhqqi" if _ON_LINUX else "qqihhi")
_ASK = (
    _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    if _ON_LINUX
    else _FLOCK.pack(0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET, 0)
)


def allocate(fd: int, start: int, size: int) -> None:
    """Gives a range of a file its disk blocks, and keeps its bytes. Raises OSError.

    Nobody else may write to the range meanwhile. The file is open for reading and writing.
    """
    if LINUX:
        try:
            os.posix_fallocate(fd, start, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        else:
            return
    # Writing bytes gives them blocks, zeros included.
    at, end = start, start + size
    while at < end:
        length = min(_PIECE_BYTES, end - at)
        at += os.pwrite(fd, os.pread(fd, length, at).ljust(length, b"\0"), at)


def unnamed_file() -> int:
    """Opens an empty file that no other process can open, and that is gone when it is closed."""
    if LINUX:
        return os.memfd_create("subluminal", os.MFD_CLOEXEC)
    import tempfile

    fd, path = tempfile.mkstemp(prefix="subluminal-")
    os.unlink(path)
    return fd


def exchange(one: str, other: str) -> bool:
    """Exchanges two files in one step; False if the system or the file system cannot do it."""
    if not LINUX:
        return False
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    done = rename(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)
    )
    return bool(done == 0)


def copy_attributes(path: str, fd: int) -> None:
    """Copies access lists and labels of a file, as far as the system and its disk have them."""
    if not LINUX:
        return
    try:
        for name in os.listxattr(path):
            os.setxattr(fd, name, os.getxattr(path, name))
    except OSError:
        return


def lock_holder(fd: int) -> int | None:
    """Returns the pid that holds a record lock on a file that we want; None if it is free.

    0 is a process that is not visible from here.
    """
    fields = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_GETLK, _ASK))
    kind, pid = (fields[0], fields[4]) if _ON_LINUX else (fields[3], fields[2])
    return None if kind == fcntl.F_UNLCK else pid
