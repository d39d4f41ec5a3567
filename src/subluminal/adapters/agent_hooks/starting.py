"""Starts a session's hook shim. Several fronts may try at once, and one of them wins.

Whoever holds the lock file of a session is its hook shim, or is about to become it. The winner
listens on the socket before the hook shim loads anything, so that fronts can connect at once.
"""

import fcntl
import os
import time
from _socket import AF_UNIX, SOCK_STREAM, socket

from subluminal.config.places import make_private_dir
from subluminal.config.usable_home import usable_home
from subluminal.system.plain_signals import posix
from subluminal.system.sockets import ShortAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subluminal.adapters.agent_hooks.entry import Options, Tools
    from subluminal.config.places import Places

_PAUSE_S = 0.005
"""Pause while another front starts the hook shim, or an old one ends."""
_BACKLOG = 128
_BUG = 70


class Starting:
    """Starts the hook shim of one session, as often as it is needed."""

    def __init__(self, options: "Options", tools: "Tools") -> None:
        self._options = options
        self._tools = tools
        self._tried = False

    def start(self, where: "Places", name: str) -> "Places":
        """Starts a hook shim, or waits a moment because another process does.

        Returns the home to connect to. It is another one if `where` is not writable.
        """
        if self._tried:
            time.sleep(_PAUSE_S)
        self._tried = True
        where = usable_home(where)
        directory = make_private_dir(os.path.join(where.state, "hooks"))
        lock = _locked(os.path.join(directory, f"{name}.lock"))
        if lock is None:
            return where
        try:
            listener = _listening(os.path.join(directory, f"{name}.sock"))
            parent = os.getppid()
            if os.fork() == 0:
                self._become_shim(where, name, listener, lock, parent)
            listener.close()
        finally:
            os.close(lock)
        return where

    def _become_shim(
        self, where: "Places", name: str, listener: socket, lock: int, parent: int
    ) -> None:
        """Runs the hook shim in a forked process. Does not return."""
        code = _BUG
        try:
            _let_go((listener.fileno(), lock))
            from subluminal.adapters.agent_hooks.shim import serve

            code = serve(where, name, listener.detach(), self._options, self._tools, parent)
        finally:
            os._exit(code)


def _locked(path: str) -> int | None:
    """Returns the locked file; None if another process holds the lock."""
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_ino == os.stat(path).st_ino:
                return lock
        except BlockingIOError:
            os.close(lock)
            return None
        except FileNotFoundError:
            pass  # a hook shim that ended has just removed it
        os.close(lock)


def _listening(path: str) -> socket:
    if os.path.lexists(path):
        os.unlink(path)
    listener = socket(AF_UNIX, SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with ShortAddress(path) as address:
            listener.bind(address)
    finally:
        os.umask(mask)
    listener.listen(_BACKLOG)
    return listener


def _let_go(kept: tuple[int, ...]) -> None:
    """Lets go of what belongs to the front: the client waits until its pipes are closed."""
    posix.signal(posix.SIGALRM, posix.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    low = 3
    for fd in sorted(kept):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 4096)
