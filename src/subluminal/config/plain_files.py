"""Opens files in places where an agent, or a mistake, may have put something else.

A pipe in place of a file would make the reader wait for a writer, and a device may have no end.
"""

import errno
import os
import stat


def plain_file(path: str, flags: int) -> int:
    """An opener for `open`: takes regular files only. Raises OSError for a pipe or a device."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "it is a directory, not a regular file")
    raise OSError(errno.EINVAL, "it is not a regular file")
