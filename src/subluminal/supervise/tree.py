"""The processes under a warden or a shim: who is there, asking them to stop, killing, collecting.

Knows nothing of orders, reports and deadlines. On Linux the owner is a subreaper, so whatever
escapes by double fork and setsid() becomes its child: no child left means nobody left.
"""

import os
import time

from subluminal.supervise.processes import Process, descendants
from subluminal.supervise.signals import posix
from subluminal.supervise.wire import KILLED, Report

_KILL_PASSES = 64
"""A tree that forks while it is killed is listed again at once, at most this often."""
_SWEEP_PAUSE_S = 0.002
"""Death is not signalled to a sweep: it looks again."""


class Tree:
    """The upstream, its group and its escapees, as seen by the warden that started it."""

    def __init__(self, upstream: int, *, adopts: bool) -> None:
        self.upstream = upstream
        """Also the id of its process group and session."""
        self.upstream_is_alive = True
        self.is_gone = False
        self._adopts = adopts
        """Whether escapees become our children; else only the group can be looked after."""
        self._group_is_killed = False

    def collect(self) -> int | None:
        """Reaps whatever is dead; gives the upstream's wait status when it was among them."""
        status = None
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_gone = self._adopts or not self._group_exists()
                return status
            if pid == 0:
                return status
            if pid == self.upstream:
                self.upstream_is_alive = False
                status = code

    def signal_group(self, signum: int) -> list[Process]:
        """Sends a signal to the upstream's group; gives those of it that we can see."""
        members = [p for p in self._living() if p.group == self.upstream]
        # Until we collect it, the upstream keeps its number: no stranger can have the group's.
        if self.upstream_is_alive or not self._adopts:
            _signal_group(self.upstream, signum)
        else:
            for member in members:
                _signal(member.pid, signum)
        return members

    def terminate(self) -> list[Process]:
        """Asks the group to stop, and the escapees that have nobody else to look after them."""
        asked = self.signal_group(posix.SIGTERM)
        own_pid = os.getpid()
        for escapee in self._living():
            if escapee.parent == own_pid and escapee.group != self.upstream:
                _signal(escapee.pid, posix.SIGTERM)
                asked.append(escapee)
        return asked

    def kill(self) -> list[Process]:
        """Kills everything; gives what it could see. Call again until `is_gone`."""
        # Listed first: the group may be dead before anyone looks, and every kill is told (no-orphans).
        members = [p for p in self._living() if p.group == self.upstream]
        if self.upstream_is_alive or not self._adopts:
            _signal_group(self.upstream, posix.SIGKILL)
            self._group_is_killed = True
        named = {member.pid for member in members}
        return members + [p for p in kill_below(os.getpid()) if p.pid not in named]

    def _living(self) -> list[Process]:
        return [p for p in descendants(os.getpid()) if not p.is_dead]

    def _group_exists(self) -> bool:
        # A member that its new parent never collects still counts as one for the kernel.
        if self._group_is_killed:
            return False
        try:
            os.killpg(self.upstream, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


def kill_below(root: int, spare: frozenset[int] = frozenset()) -> list[Process]:
    """Kills what lives below `root`, listing again until nobody new turns up."""
    killed: dict[int, Process] = {}
    for _ in range(_KILL_PASSES):
        living = [p for p in descendants(root, spare) if not p.is_dead]
        new = [p for p in living if p.pid not in killed]
        if not new:
            break
        for victim in new:
            _signal(victim.pid, posix.SIGKILL)
            killed[victim.pid] = victim
    return list(killed.values())


def sweep_descendants(
    *, spare: frozenset[int] = frozenset(), timeout_ms: int = 2000
) -> list[Report]:
    """Ends what a dead warden left to this process, which must be a subreaper; says what it killed.

    `spare` names children of ours that are not of the upstream's tree. Collects one by one, never
    with `waitpid(-1)`, which could take an exit status that other code waits for.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    own_pid = os.getpid()
    killed: dict[int, Process] = {}
    while True:
        killed |= {victim.pid: victim for victim in kill_below(own_pid, spare)}
        left = descendants(own_pid, spare)
        # Only an empty list ends it: who was just collected may have forked before it died.
        if not left or time.monotonic() > deadline:
            return [ended(victim, posix.SIGKILL, "left behind") for victim in killed.values()]
        collected = [p for p in left if p.parent == own_pid and _collect(p.pid)]
        if len(collected) < len(left):
            time.sleep(_SWEEP_PAUSE_S)


def ended(victim: Process, signum: int, why: str) -> Report:
    """The report that a process got a signal; by name only, a command line can hold secrets."""
    return Report(KILLED, victim.pid, None, signum, f"`{victim.name}`: {why}")


def _collect(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _signal(pid: int, signum: int) -> None:
    # PermissionError: it changed its user. It had end of input, and we wait for it.
    try:
        os.kill(pid, signum)
    except (ProcessLookupError, PermissionError):
        return


def _signal_group(group: int, signum: int) -> None:
    try:
        os.killpg(group, signum)
    except (ProcessLookupError, PermissionError):
        return
