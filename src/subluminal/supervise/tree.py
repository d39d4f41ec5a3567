"""Lists, signals, kills and reaps the processes below a warden or a shim.

On Linux the warden is a subreaper: a process that escapes by double fork and setsid() becomes the
warden's child. So the tree is gone when the warden has no child left. On other systems only the
upstream's process group can be found. The order and timing of an end is in `ending`.
"""

import os
import time

from subluminal.supervise.processes import Process, descendants
from subluminal.supervise.system import posix
from subluminal.supervise.wire import KILLED, Report

_KILL_PASSES = 64
"""How often a tree that forks while it is killed is listed again at once."""
_SWEEP_PAUSE_S = 0.002
"""Pause between two scans of a sweep, which nothing tells of a death."""


class Tree:
    """The upstream, its process group and its escapees, as the warden sees them."""

    def __init__(self, upstream: int, *, adopts: bool) -> None:
        self.upstream = upstream
        """Pid of the upstream; also the id of its process group and of its session."""
        self.upstream_is_alive = True
        self.is_gone = False
        self._adopts = adopts
        """True if escapees become our children; otherwise only the group can be ended."""
        self._group_is_killed = False

    def collect(self) -> int | None:
        """Reaps dead children. Returns the upstream's wait status if it was one of them."""
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
        """Signals the upstream's group. Returns the members that we can see."""
        members = [p for p in self._living() if p.group == self.upstream]
        # Until we reap the upstream, no other process can get its pid, nor its group's id.
        if self.upstream_is_alive or not self._adopts:
            _signal_group(self.upstream, signum)
        else:
            for member in members:
                _signal(member.pid, signum)
        return members

    def terminate(self) -> list[Process]:
        """Sends SIGTERM to the group, and to escapees whose parent is now the warden."""
        asked = self.signal_group(posix.SIGTERM)
        own_pid = os.getpid()
        for escapee in self._living():
            if escapee.parent == own_pid and escapee.group != self.upstream:
                _signal(escapee.pid, posix.SIGTERM)
                asked.append(escapee)
        return asked

    def kill(self) -> list[Process]:
        """Kills the whole tree. Returns those it could see. Repeat until `is_gone`."""
        # Listed before the kill, because every kill is reported and the group may die at once.
        members = [p for p in self._living() if p.group == self.upstream]
        if self.upstream_is_alive or not self._adopts:
            _signal_group(self.upstream, posix.SIGKILL)
            self._group_is_killed = True
        named = {member.pid for member in members}
        return members + [p for p in kill_below(os.getpid()) if p.pid not in named]

    def _living(self) -> list[Process]:
        return [p for p in descendants(os.getpid()) if not p.is_dead]

    def _group_exists(self) -> bool:
        # For the kernel, a zombie that its new parent never reaps still is a member of the group.
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
    """Kills every process below `root`, listing them again until no new one appears."""
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
    """Kills the processes that a dead warden left to this process. Returns a report for each.

    This process must be a subreaper. `spare` are its children that do not belong to the upstream's
    tree. Each child is reaped by its pid: `waitpid(-1)` could take an exit status that other code
    waits for.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    own_pid = os.getpid()
    killed: dict[int, Process] = {}
    while True:
        killed |= {victim.pid: victim for victim in kill_below(own_pid, spare)}
        left = descendants(own_pid, spare)
        # Only an empty list ends the sweep: a process that was just reaped may have forked before.
        if not left or time.monotonic() > deadline:
            return [ended(victim, posix.SIGKILL, "left behind") for victim in killed.values()]
        collected = [p for p in left if p.parent == own_pid and _collect(p.pid)]
        if len(collected) < len(left):
            time.sleep(_SWEEP_PAUSE_S)


def ended(victim: Process, signum: int, why: str) -> Report:
    """Makes the report of a signalled process. Name only: a command line can contain secrets."""
    return Report(KILLED, victim.pid, None, signum, f"`{victim.name}`: {why}")


def _collect(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _signal(pid: int, signum: int) -> None:
    # PermissionError: the process runs as another user now. Its input is closed; we wait for it.
    try:
        os.kill(pid, signum)
    except (ProcessLookupError, PermissionError):
        return


def _signal_group(group: int, signum: int) -> None:
    try:
        os.killpg(group, signum)
    except (ProcessLookupError, PermissionError):
        return
