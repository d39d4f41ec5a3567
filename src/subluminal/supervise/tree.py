"""Finds, signals, kills and reaps the processes of a tree: for warden, deputy and shim.

The order and timing of an end is in `ending`.
"""

import os
import time

from subluminal.supervise.signals import posix
from subluminal.supervise.wire import KILLED, Report
from subluminal.system.process import below
from subluminal.system.processes import Process, descendants, table, variables

SHIM_ID = "SUBLUMINAL_SHIM_ID"
"""Environment variable of the upstream and all its descendants: `SHIM_PID.START.CLIENT_PID`.

Not secret. `START` is 0 where only `ps` could say it. Processes that left the tree are found by it
on systems other than Linux, and `sub doctor` says whose they were.
"""
_KILL_PASSES = 64
"""How often a tree that forks while it is killed is listed again at once."""
_SWEEP_PAUSE_S = 0.002
"""Pause between two scans of a sweep, which nothing tells of a death."""
_INIT = 1


class Kin:
    """How the processes of one tree are found.

    On Linux the root adopts every process that loses its parent, so all of them are below it. On
    other systems such a process belongs to nobody. It is then found by its process group, or by
    the mark in its environment, and so are the processes below it. A process that left its group
    and cleared its environment is not found.
    """

    __slots__ = ("_adopts", "_mark", "group", "root")

    def __init__(self, root: int, *, adopts: bool, mark: str = "", group: int = 0) -> None:
        self.root = root
        self.group = group
        """Process group of the upstream; 0 while there is none."""
        self._adopts = adopts
        self._mark = os.fsencode(mark)

    def members(self, spare: frozenset[int] = frozenset()) -> list[Process]:
        """Lists the tree, zombies included, without its root, `spare` and what is below `spare`."""
        if self._adopts:
            return descendants(self.root, spare)
        everyone = table()
        strays = {
            pid for pid, entry in everyone.items() if self.group and entry.group == self.group
        }
        if self._mark:
            marks = variables(os.fsencode(SHIM_ID))
            strays |= {pid for pid, mark in marks.items() if mark == self._mark}
        strays -= {self.root, os.getpid(), *spare}
        found = [everyone[pid] for pid in strays if pid in everyone]
        found += below({self.root, *strays}, everyone, spare | {os.getpid()})
        # A zombie of another process is not ours to reap.
        return [entry for entry in found if not entry.is_dead or entry.parent == os.getpid()]

    def living(self, spare: frozenset[int] = frozenset()) -> list[Process]:
        """Lists the tree without its zombies."""
        return [entry for entry in self.members(spare) if not entry.is_dead]


class Tree:
    """The upstream, its process group and its escapees, as the warden sees them."""

    def __init__(self, upstream: int, *, adopts: bool, mark: str = "") -> None:
        self.upstream = upstream
        """Pid of the upstream; also the id of its process group and of its session."""
        self.upstream_is_alive = True
        self.is_gone = False
        self._adopts = adopts
        """True if escapees become our children, so that none of them is missed."""
        self._kin = Kin(os.getpid(), adopts=adopts, mark=mark, group=upstream)
        self._group_is_killed = False

    def collect(self) -> int | None:
        """Reaps dead children. Returns the upstream's wait status if it was one of them."""
        status = None
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.is_gone = self._adopts or not (self._group_exists() or self._kin.living())
                return status
            if pid == 0:
                return status
            if pid == self.upstream:
                self.upstream_is_alive = False
                status = code

    def signal_group(self, signum: int) -> list[Process]:
        """Signals the upstream's group. Returns the members that we can see."""
        members = [p for p in self._kin.living() if p.group == self.upstream]
        # Until we reap the upstream, no other process can get its pid, nor its group's id.
        if self.upstream_is_alive or not self._adopts:
            _signal_group(self.upstream, signum)
        else:
            for member in members:
                signal_process(member.pid, signum)
        return members

    def terminate(self) -> list[Process]:
        """Sends SIGTERM to the group, and to escapees that have lost their parent."""
        asked = self.signal_group(posix.SIGTERM)
        foster_parents = (os.getpid(), _INIT)
        for escapee in self._kin.living():
            if escapee.parent in foster_parents and escapee.group != self.upstream:
                signal_process(escapee.pid, posix.SIGTERM)
                asked.append(escapee)
        return asked

    def kill(self) -> list[Process]:
        """Kills the whole tree. Returns those it could see. Repeat until `is_gone`."""
        # Listed before the kill, because every kill is reported and the group may die at once.
        members = [p for p in self._kin.living() if p.group == self.upstream]
        if self.upstream_is_alive or not self._adopts:
            _signal_group(self.upstream, posix.SIGKILL)
            self._group_is_killed = True
        named = {member.pid for member in members}
        return members + [p for p in kill_all(self._kin) if p.pid not in named]

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


def kill_all(kin: Kin, spare: frozenset[int] = frozenset()) -> list[Process]:
    """Kills every process of a tree, listing them again until no new one appears."""
    killed: dict[int, Process] = {}
    for _ in range(_KILL_PASSES):
        new = [p for p in kin.living(spare) if p.pid not in killed]
        if not new:
            break
        for victim in new:
            signal_process(victim.pid, posix.SIGKILL)
            killed[victim.pid] = victim
    return list(killed.values())


def sweep(
    kin: Kin, *, spare: frozenset[int] = frozenset(), timeout_ms: int = 2000
) -> list[Process]:
    """Kills the processes of a tree and reaps those that are our children. Returns all of them.

    `spare` are our children that do not belong to the tree. Each child is reaped by its pid:
    `waitpid(-1)` could take an exit status that other code waits for.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    own_pid = os.getpid()
    killed: dict[int, Process] = {}
    while True:
        killed |= {victim.pid: victim for victim in kill_all(kin, spare)}
        left = kin.members(spare)
        # Only an empty list ends the sweep: a process that was just reaped may have forked before.
        if not left or time.monotonic() > deadline:
            return list(killed.values())
        collected = [p for p in left if p.parent == own_pid and _collect(p.pid)]
        if len(collected) < len(left):
            time.sleep(_SWEEP_PAUSE_S)


def sweep_descendants(
    *, spare: frozenset[int] = frozenset(), timeout_ms: int = 2000
) -> list[Process]:
    """Kills every process below this one, which should be a subreaper. See `sweep`."""
    return sweep(Kin(os.getpid(), adopts=True), spare=spare, timeout_ms=timeout_ms)


def ended(victim: Process, signum: int, why: str) -> Report:
    """Makes the report of a signalled process. Name only: a command line can contain secrets."""
    return Report(KILLED, victim.pid, None, signum, f"`{victim.name}`: {why}")


def signal_process(pid: int, signum: int) -> None:
    """Signals a process, if it exists and is ours."""
    # PermissionError: the process runs as another user now. Its input is closed; we wait for it.
    try:
        os.kill(pid, signum)
    except (ProcessLookupError, PermissionError):
        return


def _collect(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _signal_group(group: int, signum: int) -> None:
    try:
        os.killpg(group, signum)
    except (ProcessLookupError, PermissionError):
        return
