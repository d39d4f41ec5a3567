"""Writes to a descriptor without blocking: bytes that it does not accept yet wait in order."""

import os
import select
import time
from collections import deque
from typing import Protocol

CHUNK_BYTES = 65_536
"""Size of a read. Larger reads are slower, because their memory is mapped anew each time."""


class Streamed(Protocol):
    """Something large that is written piece by piece, such as a spooled line."""

    size: int

    def read(self, size: int) -> bytes:
        """Returns the next piece; empty at the end."""

    def close(self) -> None:
        """Frees its resources."""


class Outlet:
    """Bytes and streams to be written. `waiting` is the number of bytes not yet written."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.waiting = 0
        self.broken = False
        """whether the reader is gone; then everything that is sent is dropped"""
        self.busy = False
        """whether the descriptor should be polled for room"""
        self._queue: deque[bytes | Streamed] = deque()

    def send(self, data: bytes) -> None:
        """Writes what the descriptor accepts now; the rest waits."""
        if self.broken or not data:
            return
        if not self._queue:
            try:  # this is _write, inlined: every call and every answer passes here
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
        """Sends something large after what is waiting; all of it counts as waiting."""
        if self.broken:
            source.close()
            return
        self._queue.append(source)
        self.waiting += source.size
        self.busy = True
        self.drain()

    def drain(self) -> None:
        """Writes what waits, as far as the descriptor accepts it; at most 16 pieces in one call."""
        for _ in range(16):
            if not self._queue or not self._drain_one():
                break
        self.busy = bool(self._queue)

    def drop_oldest(self, limit: int) -> int:
        """Drops the oldest bytes until at most `limit` bytes wait; returns how many it dropped."""
        dropped = 0
        while self.waiting > limit and self._queue:
            oldest = self._queue.popleft()
            size = len(oldest) if isinstance(oldest, bytes) else oldest.size
            self.waiting -= size
            dropped += size
        self.busy = bool(self._queue)
        return dropped

    def _drain_one(self) -> bool:
        """Writes the front of the queue; returns False if the descriptor is full or broken."""
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
        """Handles a write that accepted no bytes: the pipe is full, or its reader is gone."""
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
    """The outlet to the client: the server's bytes, with our own lines between its lines."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._at_line_start = True
        self._held: list[bytes] = []
        self._server_ended = False

    def forward(self, chunk: bytes) -> None:
        """Passes on what the server wrote; sends held lines after the server's next newline."""
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
        """Sends a message of our own as a line; returns the size of the line in bytes."""
        line = message + b"\n"
        self.inject(line)
        return len(line)

    def inject(self, line: bytes) -> None:
        """Sends a line of our own; holds it while the server is in the middle of a line."""
        if self._at_line_start or self.broken:
            self.send(line)
        else:
            self._held.append(line)
            self.waiting += len(line)
            if self._server_ended:
                self._let_in(b"\n")

    def server_ended(self) -> None:
        """Sends held lines, because the server will not end the line that it began."""
        self._server_ended = True
        if self._held:
            self._let_in(b"\n")

    def _let_in(self, before: bytes) -> None:
        lines = b"".join(self._held)
        self._held.clear()
        self.waiting = max(0, self.waiting - len(lines))
        self._at_line_start = True
        self.send(before + lines)


def drain_all(outlets: tuple[Outlet, ...], within_ms: int) -> None:
    """Writes everything that waits, as long as somebody reads it, for `within_ms` at most."""
    deadline = time.monotonic_ns() + within_ms * 1_000_000
    poll = select.poll()
    while any(each.busy for each in outlets) and time.monotonic_ns() < deadline:
        for each in outlets:
            if each.busy:
                poll.register(each.fd, select.POLLOUT)
        for fd, _ in poll.poll(50):
            poll.unregister(fd)
        for each in outlets:
            each.drain()
