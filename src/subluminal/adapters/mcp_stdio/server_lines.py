"""Splits the server's chunks into messages, in constant memory.

A line is kept whole up to a bound. Of a longer line only head, tail, size and hash are kept, and
whether it contains a true `isError`. `mcp.replies` reads the messages.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from subluminal.adapters.mcp.replies import EDGE_BYTES, ServerMessage, says_error

_SEAM_BYTES = 64
"""Bytes on either side of a seam between chunks in which an `isError` across it is found."""


class LineKeeper:
    """Splits chunks into lines, and keeps at most `max_bytes` of a line."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._hash: Any = None
        self._head = b""
        self._tail = b""
        self._says_error = False
        self._skipping = False

    def feed(self, chunk: bytes, *, wanted: bool) -> Iterable[ServerMessage]:
        """Returns the lines that end in this chunk.

        `wanted` is False if no request is pending. A line that begins then is not kept.
        """
        end = chunk.find(b"\n")
        if 0 <= end == len(chunk) - 1 <= self.max_bytes and not (self._size or self._skipping):
            # Nearly every chunk is one whole line.
            return (ServerMessage(end, chunk[:end]),) if wanted else ()
        return self._cut(chunk, wanted)

    def _cut(self, chunk: bytes, wanted: bool) -> Iterator[ServerMessage]:
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

    def _whole(self, piece: bytes) -> ServerMessage:
        if len(piece) <= self.max_bytes:
            return ServerMessage(len(piece), piece)
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
            self._note(piece)
            return
        self._parts.append(piece)
        if self._size > self.max_bytes:
            self._let_go()

    def _let_go(self) -> None:
        self._hash = sha256()
        text = b"".join(self._parts)
        self._parts = []
        self._head = text[:EDGE_BYTES]
        self._note(text)

    def _note(self, piece: bytes) -> None:
        """Adds a part of a large line to its hash, its tail and the search for `isError`."""
        self._hash.update(piece)
        if not self._says_error:
            seam = self._tail[-_SEAM_BYTES:] + piece[:_SEAM_BYTES]
            self._says_error = says_error(piece) or says_error(seam)
        if len(piece) < EDGE_BYTES:
            piece = self._tail + piece
        self._tail = piece[-EDGE_BYTES:]

    def _line(self) -> ServerMessage:
        if self._hash is None:
            line = ServerMessage(self._size, b"".join(self._parts))
        else:
            line = ServerMessage(
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
