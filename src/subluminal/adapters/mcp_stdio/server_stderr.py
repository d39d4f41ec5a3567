"""The server's standard error on its way to the client, and the line in it that tells of a failure.

It must never block: what nobody reads is dropped, the oldest first.
"""

from subluminal.adapters.mcp_stdio.descriptors import read, readable
from subluminal.adapters.mcp_stdio.outlet import Outlet
from subluminal.adapters.mcp_stdio.stderr_tail import StderrTail

MAX_STDERR_BYTES = 1 << 18
"""Most bytes that wait; past it the oldest are dropped."""


class ServerStderr:
    """Passes on what the server writes to stderr, and what the shim itself has to say there."""

    def __init__(self, fd: int) -> None:
        self.outlet = Outlet(2)
        self.is_open = True
        """whether the server, or a process that it left, may still write"""
        self._fd = fd
        self._tail = StderrTail()

    def read(self) -> None:
        """Passes on what can be read now."""
        data = read(self._fd)
        if data is None:
            return
        if not data:
            self.is_open = False
            return
        self._tail.feed(data)
        self.outlet.send(data)
        if self.outlet.waiting > MAX_STDERR_BYTES:
            self.outlet.drop_oldest(MAX_STDERR_BYTES)

    def last_line(self, max_reads: int) -> str:
        """Returns the line that tells why a dead server failed, or an empty text."""
        for _ in range(max_reads):
            if self.is_open and readable(self._fd):
                self.read()
        return self._tail.line()

    def say(self, text: str) -> None:
        """Writes a line of the shim's own."""
        self.outlet.send(text.encode("utf-8", "backslashreplace") + b"\n")
