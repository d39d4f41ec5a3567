"""The process of the client whose hook runs: finds it, and watches for its death."""

from collections.abc import Mapping

from subluminal.system.adoption import maybe_watch
from subluminal.system.process import exists
from subluminal.system.processes import process

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox"))
"""Programs that clients start their hooks with."""
_INITS = frozenset(("init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit"))
"""Programs that adopt what a dead client leaves. In a container, process 1 may be the client."""
_MAX_SHELLS = 8
_CLAUDE_PID = "CLAUDE_PID"


def client_pid(client: str, environ: Mapping[str, str], parent: int) -> int:
    """Returns the pid of the client: it says so itself, or is the first ancestor but for shells."""
    told = environ.get(_CLAUDE_PID, "")
    if client == "claude" and told.isdecimal() and exists(int(told)):
        return int(told)
    pid = parent
    for _ in range(_MAX_SHELLS):
        found = process(pid)
        above = None if found is None else process(found.parent)
        if found is None or above is None or found.name not in _SHELLS or above.name in _INITS:
            break
        pid = above.pid
    return pid


class Watch:
    """Knows when a process is gone."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._start = _start_of(pid)
        self.fd = maybe_watch(pid)
        """readable when the process is gone; None where the system has no such descriptor"""

    def is_gone(self) -> bool:
        """Returns True if the process is dead, even if another one has its pid by now."""
        return self._start is None or _start_of(self._pid) != self._start


def _start_of(pid: int) -> int | None:
    found = process(pid)
    return None if found is None or found.is_dead else found.start
