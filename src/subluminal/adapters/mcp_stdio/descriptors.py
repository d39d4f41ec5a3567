"""What a loop asks of a file descriptor, and how the client's are borrowed and given back."""

import fcntl
import os
import select
import signal
import stat
from typing import Any

from subluminal.adapters.mcp_stdio.outlet import CHUNK_BYTES

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""By these a client ends a server."""

_PIPE_BYTES = 262_144
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


def read(fd: int) -> bytes | None:
    """Returns what is there, empty at the end, None if nothing is there yet."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def readable(fd: int) -> bool:
    """Whether a read would return something, or the end."""
    return _looked(fd, select.POLLIN) != 0


def hung_up(fd: int) -> bool:
    """Whether nobody reads any more what is written here. A file never hangs up."""
    return bool(_looked(fd, 0) & _GONE)


def _looked(fd: int, events: int) -> int:
    poll = select.poll()
    poll.register(fd, events)
    ready = poll.poll(0)
    return ready[0][1] if ready else 0


class Borrowed:
    """Descriptors that never block while we run. Pipes and sockets only: a terminal is shared.

    The flag belongs to the pipe, not to us, so it is put back for whoever uses it after us.
    """

    def __init__(self, fds: tuple[int, ...]) -> None:
        self._changed: list[int] = []
        for fd in fds:
            mode = os.fstat(fd).st_mode
            if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and os.get_blocking(fd):
                os.set_blocking(fd, False)
                self._changed.append(fd)
                if stat.S_ISFIFO(mode):
                    _widen(fd)

    def give_back(self) -> None:
        """Puts the flags back."""
        for fd in self._changed:
            try:
                os.set_blocking(fd, True)
            except OSError:
                continue  # closed meanwhile


def _widen(fd: int) -> None:
    """Makes room for more at once: a large answer then needs fewer turns (performance.md 1f)."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (OSError, AttributeError):
        return  # the user's share of pipe memory is used up, or this is not Linux


def wake_on_signals() -> int:
    """A descriptor that tells, a byte each, which signals came."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for signum in STOP_SIGNALS:
        signal.signal(signum, _noted)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return read_end


def _noted(_signum: int, _frame: Any) -> None:
    """The wake-up descriptor has the signal; a handler must exist for it to be written."""
