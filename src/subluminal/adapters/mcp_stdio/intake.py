"""The client's bytes cut into lines, held whole up to a bound and on disk above it
(byte-transparent).

Gives what was read as it stands; forwarding is left to the shim.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from subluminal.adapters.mcp_stdio.spool import Spool, SpoolFull

if TYPE_CHECKING:
    from subluminal.adapters.mcp.large import LargeMessage


class LargeLine:
    """A line on disk, ended or being read."""

    def __init__(self, spool: Spool) -> None:
        from subluminal.adapters.mcp.large import LargeScanner  # most shims never need it

        self.spool = spool
        self.overflowed = False
        """whether it is too large for the disk, so that it cannot be forwarded"""
        self.size = 0
        """of all that came, without the newline"""
        self._scanner = LargeScanner()

    def append(self, data: bytes) -> None:
        """Takes more of the line; what exceeds the bound is read past and dropped."""
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
        """What could be told of it."""
        message = self._scanner.result()
        if not self.overflowed:
            return message
        why = "it is larger than `limits.max_spool_bytes`, or the disk is full"
        return structs.replace(message, problem=why, is_lost=True)


class Intake:
    """Cuts chunks into lines. A line that outgrows `max_bytes` goes to a spool."""

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
            return (chunk,) if chunk else ()  # a whole message and no more, as most reads are
        lines, start = [], 0
        while end:
            lines.append(self._ended(chunk[start:end]))
            start, end = end, chunk.find(b"\n", end) + 1
        if start < len(chunk):
            self._keep(chunk[start:])
        return lines

    def finish(self) -> Iterator[bytes | LargeLine]:
        """Yields a last line that no newline ended."""
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
        # The newline does not count: a message of exactly the bound is inspected.
        if self._size > self.max_bytes + 1:
            self._large = LargeLine(self._open_spool())
            self._large.append(b"".join(self._parts))
            self._parts = []
