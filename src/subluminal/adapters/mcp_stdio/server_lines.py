"""The server's chunks cut into lines, in constant memory.

A line is kept whole up to a bound, past which only its head, tail, size and hash remain, and
whether it says that it is an error. What a line means is known to `replies`.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from msgspec import Struct

EDGE_BYTES = 1_024
"""Enough of a line's head and tail to find an id there."""

IS_ERROR = re.compile(rb'"isError"\s*:\s*true')
_SEAM_BYTES = 64
"""A member that lies across two chunks is found if its spacing is no wider than this."""


class Line(Struct, frozen=True):
    """One line of the server's. `text` is None where it was too large to keep."""

    size: int
    text: bytes | None
    head: bytes = b""
    tail: bytes = b""
    stream_hash: str | None = None
    says_error: bool = False
    """whether `isError` was seen in a line that was not kept"""


class LineKeeper:
    """Cuts chunks into lines, and keeps no more of a line than `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._hash: Any = None
        self._head = b""
        self._tail = b""
        self._says_error = False
        self._skipping = False

    def feed(self, chunk: bytes, *, wanted: bool) -> Iterator[Line]:
        """Yields the lines that end in this chunk.

        `wanted`: whether an answer may come. A line that began when none could is not kept.
        """
        start = 0
        while True:
            end = chunk.find(b"\n", start)
            if end < 0:
                self._keep(chunk[start:] if start else chunk, wanted)
                return
            piece = chunk[start:end]
            start = end + 1
            if self._skipping or not (wanted or self._size):
                self._skipping = False
                continue
            if self._size:
                self._keep(piece, wanted)
                yield self._line()
            else:
                yield self._whole(piece)

    def _whole(self, piece: bytes) -> Line:
        if len(piece) <= self.max_bytes:
            return Line(len(piece), piece)
        self._keep(piece, True)
        return self._line()

    def _keep(self, piece: bytes, wanted: bool) -> None:
        if not piece or self._skipping:
            return
        if not self._size and not wanted:
            self._skipping = True
            return
        self._size += len(piece)
        if self._hash is not None:
            self._hash.update(piece)
            self._look_for_error(piece)
            self._tail = (self._tail + piece[-EDGE_BYTES:])[-EDGE_BYTES:]
            return
        self._parts.append(piece)
        if self._size > self.max_bytes:
            self._let_go()

    def _let_go(self) -> None:
        text = b"".join(self._parts)
        self._parts = []
        self._hash = sha256(text)
        self._look_for_error(text)
        self._head, self._tail = text[:EDGE_BYTES], text[-EDGE_BYTES:]

    def _look_for_error(self, piece: bytes) -> None:
        if self._says_error:
            return
        seam = self._tail[-_SEAM_BYTES:] + piece[:_SEAM_BYTES]
        self._says_error = bool(IS_ERROR.search(piece) or IS_ERROR.search(seam))

    def _line(self) -> Line:
        if self._hash is None:
            line = Line(self._size, b"".join(self._parts))
        else:
            line = Line(
                self._size,
                None,
                self._head,
                self._tail,
                self._hash.hexdigest(),
                self._says_error,
            )
        self._parts, self._size, self._hash = [], 0, None
        self._head = self._tail = b""
        self._says_error = False
        return line
