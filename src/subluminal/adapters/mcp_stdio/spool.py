"""A client's line that is too large to inspect, kept on disk until it is decided
(byte-transparent).

The file has no name: nobody finds it, and it goes when we do.
"""

import os

from subluminal.config.places import make_private_dir


class SpoolFull(Exception):
    """The line is larger than the bound, or the disk is full."""


class Spool:
    """Bytes on disk: appended, then read once from the start."""

    def __init__(self, directory: str, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._fd: int | None = None
        self.size = 0
        self._read_at = 0

    def append(self, data: bytes) -> None:
        """Adds bytes, or raises SpoolFull."""
        if self.size + len(data) > self._max_bytes:
            raise SpoolFull
        if self._fd is None:
            self._fd = _unnamed_file(self._directory)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            raise SpoolFull from error
        self.size += len(data)

    def read(self, size: int) -> bytes:
        """Returns the next bytes; empty at the end."""
        if self._fd is None:
            return b""
        piece = os.pread(self._fd, min(size, self.size - self._read_at), self._read_at)
        self._read_at += len(piece)
        return piece

    def close(self) -> None:
        """Frees the disk space."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _unnamed_file(directory: str) -> int:
    import tempfile  # few shims ever need it

    for place in (directory, tempfile.gettempdir()):
        try:
            fd, path = tempfile.mkstemp(prefix="spool-", dir=make_private_dir(place))
        except OSError:
            continue
        os.unlink(path)
        return fd
    raise SpoolFull
