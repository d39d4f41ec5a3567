"""File descriptors of the loop: reading without blocking, flags set and put back."""

import os
import select
import stat

from subluminal.adapters.mcp_stdio.outlet import CHUNK_BYTES
from subluminal.system import pipes

_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


def read(fd: int) -> bytes | None:
    """Returns the bytes that are available: empty at the end, None if there are none yet."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def readable(fd: int, wait_ms: int = 0) -> bool:
    """Returns True if a read would return bytes, or the end, now or within `wait_ms`."""
    return _looked(fd, select.POLLIN, wait_ms) != 0


def hung_up(fd: int) -> bool:
    """Returns True if the reader of a pipe or socket is gone. Always False for a file."""
    return bool(_looked(fd, 0) & _GONE)


def _looked(fd: int, events: int, wait_ms: int = 0) -> int:
    poll = select.poll()
    poll.register(fd, events)
    ready = poll.poll(wait_ms)
    return ready[0][1] if ready else 0


class Borrowed:
    """Descriptors that do not block while the shim runs.

    Only pipes and sockets are changed: a terminal is shared with others. The flag belongs to the
    pipe, so it is put back for the next process that uses it.
    """

    def __init__(self, fds: tuple[int, ...]) -> None:
        self._changed: list[int] = []
        for fd in fds:
            mode = os.fstat(fd).st_mode
            if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and os.get_blocking(fd):
                os.set_blocking(fd, False)
                self._changed.append(fd)
                if stat.S_ISFIFO(mode):
                    pipes.widen(fd)

    def give_back(self) -> None:
        """Puts the flags back."""
        for fd in self._changed:
            try:
                os.set_blocking(fd, True)
            except OSError:
                continue  # closed meanwhile
