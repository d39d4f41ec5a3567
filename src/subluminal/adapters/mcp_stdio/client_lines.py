"""Splits the client's bytes into lines. A line above a bound is kept on disk instead of in memory.

Lines are returned unchanged, with their newlines (byte-transparent).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from subluminal.config.places import make_private_dir

if TYPE_CHECKING:
    from subluminal.adapters.mcp.large import LargeMessage


class SpoolFull(Exception):
    """The line is larger than the bound of the spool, or the disk is full."""


class Spool:
    """A file without a name: bytes are appended, then read once from the start.

    Nobody else can open the file, and it disappears when the shim ends.
    """

    def __init__(self, directory: str, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._fd: int | None = None
        self.size = 0
        self._read_at = 0

    def append(self, data: bytes) -> None:
        """Appends bytes. Raises SpoolFull."""
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
    import tempfile  # rarely needed

    for place in (directory, tempfile.gettempdir()):
        try:
            fd, path = tempfile.mkstemp(prefix="spool-", dir=make_private_dir(place))
        except OSError:
            continue
        os.unlink(path)
        return fd
    raise SpoolFull


class LargeLine:
    """A line on disk, complete or still being read."""

    def __init__(self, spool: Spool) -> None:
        from subluminal.adapters.mcp.large import LargeScanner  # rarely needed

        self.spool = spool
        self.overflowed = False
        """whether the line is too large for the disk, so that it cannot be forwarded"""
        self.size = 0
        """size of the line in bytes, without its newline"""
        self._scanner = LargeScanner()

    def append(self, data: bytes) -> None:
        """Takes more of the line; if it exceeds the spool's bound, its bytes are dropped."""
        self._scanner.feed(data)
        self.size += len(data) - data.endswith(b"\n")
        if self.overflowed:
            return
        try:
            self.spool.append(data)
        except SpoolFull:
            self.overflowed = True
            self.spool.close()

    def message(self) -> "LargeMessage":
        """Returns what could be read of the line."""
        message = self._scanner.result()
        if not self.overflowed:
            return message
        why = "it is larger than `limits.max_spool_bytes`, or the disk is full"
        return structs.replace(message, problem=why, is_lost=True)


class LineSplitter:
    """Splits chunks into lines. A line longer than `max_bytes` goes to a spool."""

    def __init__(self, max_bytes: int, open_spool: Callable[[], Spool]) -> None:
        self.max_bytes = max_bytes
        self._open_spool = open_spool
        self._parts: list[bytes] = []
        self._size = 0
        self._large: LargeLine | None = None

    def feed(self, chunk: bytes) -> Sequence[bytes | LargeLine]:
        """Returns the lines that end in this chunk, each with its newline."""
        end = chunk.find(b"\n") + 1
        if end == len(chunk) <= self.max_bytes and not self._size:
            return (chunk,) if chunk else ()  # most reads are one whole message
        lines, start = [], 0
        while end:
            lines.append(self._ended(chunk[start:end]))
            start, end = end, chunk.find(b"\n", end) + 1
        if start < len(chunk):
            self._keep(chunk[start:])
        return lines

    def finish(self) -> Iterator[bytes | LargeLine]:
        """Yields a last line without a newline."""
        if self._size or self._large is not None:
            yield self._ended(b"")

    def _ended(self, piece: bytes) -> bytes | LargeLine:
        if self._large is None and not self._parts and len(piece) <= self.max_bytes:
            return piece
        self._keep(piece)
        large, self._large = self._large, None
        parts, self._parts, self._size = self._parts, [], 0
        return large if large is not None else b"".join(parts)

    def _keep(self, piece: bytes) -> None:
        if self._large is not None:
            self._large.append(piece)
            return
        self._parts.append(piece)
        self._size += len(piece)
        # The newline does not count: a message of exactly `max_bytes` is inspected.
        if self._size > self.max_bytes + 1:
            self._large = LargeLine(self._open_spool())
            self._large.append(b"".join(self._parts))
            self._parts = []
