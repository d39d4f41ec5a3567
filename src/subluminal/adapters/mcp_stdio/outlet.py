"""One descriptor to write to, without ever blocking: what it does not take now waits in order."""

import os
from collections import deque
from typing import Protocol

CHUNK_BYTES = 65_536
"""Larger reads cost page faults (performance.md 1f)."""


class Streamed(Protocol):
    """Something large that is written piece by piece, such as a spooled line."""

    size: int

    def read(self, size: int) -> bytes:
        """Returns the next piece; empty at the end."""

    def close(self) -> None:
        """Lets go of it."""


class Outlet:
    """Bytes and streams on their way out. `waiting` is how many bytes have not left yet."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.waiting = 0
        self.broken = False
        """nobody reads any more; what is sent goes nowhere"""
        self.busy = False
        """whether the descriptor should be polled for room"""
        self._queue: deque[bytes | Streamed] = deque()

    def send(self, data: bytes) -> None:
        """Writes what the descriptor takes at once; the rest waits."""
        if self.broken or not data:
            return
        if not self._queue:
            try:  # not by _write: every call and every answer passes here
                written = os.write(self.fd, data)
            except OSError as error:
                written = self._not_written(error)
            if written == len(data) or self.broken:
                return
            data = data[written:]
        self._queue.append(data)
        self.waiting += len(data)
        self.busy = True

    def stream(self, source: Streamed) -> None:
        """Sends something large behind what is waiting; all of it counts as waiting."""
        if self.broken:
            source.close()
            return
        self._queue.append(source)
        self.waiting += source.size
        self.busy = True
        self.drain()

    def drain(self) -> None:
        """Writes what waits, as far as the descriptor takes it. Bounded, so that others get on."""
        for _ in range(16):
            if not self._queue or not self._drain_one():
                break
        self.busy = bool(self._queue)

    def drop_oldest(self, limit: int) -> int:
        """Forgets what waits longest until at most `limit` bytes wait; returns how many went."""
        dropped = 0
        while self.waiting > limit and self._queue:
            oldest = self._queue.popleft()
            size = len(oldest) if isinstance(oldest, bytes) else oldest.size
            self.waiting -= size
            dropped += size
        self.busy = bool(self._queue)
        return dropped

    def _drain_one(self) -> bool:
        """Writes from the front of the queue; False if the descriptor is full."""
        front = self._queue[0]
        if not isinstance(front, bytes):
            piece = front.read(CHUNK_BYTES)
            if not piece:
                front.close()
                self._queue.popleft()
                return True
            self._queue.appendleft(piece)
            front = piece
        written = self._write(front)
        if self.broken:
            return False
        self.waiting -= written
        if written == len(front):
            self._queue.popleft()
            return True
        self._queue[0] = front[written:]
        return False

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self.fd, data)
        except OSError as error:
            return self._not_written(error)

    def _not_written(self, error: OSError) -> int:
        """Nothing was taken: for now, or for ever."""
        if not isinstance(error, BlockingIOError):
            self.broken = True
            self._let_go()
        return 0

    def _let_go(self) -> None:
        for item in self._queue:
            if not isinstance(item, bytes):
                item.close()
        self._queue.clear()
        self.waiting = 0
        self.busy = False


class ClientOutlet(Outlet):
    """The client's side: the server's bytes, and our own lines between its lines, never inside."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._at_line_start = True
        self._held: list[bytes] = []
        self._server_ended = False

    def forward(self, chunk: bytes) -> None:
        """Passes on what the server wrote, and lets held lines in at its next line's end."""
        if self._held:
            end = chunk.rfind(b"\n") + 1
            if end:
                self.send(chunk[:end])
                self._let_in(b"")
                chunk = chunk[end:]
                if not chunk:
                    return
        self._at_line_start = chunk.endswith(b"\n")
        self.send(chunk)

    def answer(self, message: bytes) -> int:
        """Sends a message of our own as a line; returns its size in bytes."""
        line = message + b"\n"
        self.inject(line)
        return len(line)

    def inject(self, line: bytes) -> None:
        """Sends a line of our own, as soon as the server is between two of its lines."""
        if self._at_line_start or self.broken:
            self.send(line)
        else:
            self._held.append(line)
            self.waiting += len(line)
            if self._server_ended:
                self._let_in(b"\n")

    def server_ended(self) -> None:
        """Lets held lines out when the server will not end the line that it began."""
        self._server_ended = True
        if self._held:
            self._let_in(b"\n")

    def _let_in(self, before: bytes) -> None:
        lines = b"".join(self._held)
        self._held.clear()
        self.waiting = max(0, self.waiting - len(lines))
        self._at_line_start = True
        self.send(before + lines)
