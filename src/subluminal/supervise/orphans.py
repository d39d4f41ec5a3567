"""For `sub doctor`: what an earlier shim left running; for `sub kill`: what still runs.

Looks only; ends nothing.

A process of an upstream's tree carries `SUBLUMINAL_SHIM_ID`, a warden has its own name. Sees the
processes of the same user, on Linux; elsewhere it finds nothing.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

from subluminal.supervise import processes
from subluminal.supervise.handle import SHIM_ID
from subluminal.supervise.serving import NAME


class Orphan(NamedTuple):
    """One process that should not be there any more."""

    pid: int
    cmdline: str
    """As `ps` shows it: it can hold what its user passed, so not for the journal."""
    reason: str


def find_orphans() -> list[Orphan]:
    """Guards, shims and upstream processes whose owner is gone, by pid.

    A warden takes up to three seconds to end a tree: what is still there after that is stuck.
    """
    found: dict[int, str] = {}
    for pid in processes.pids():
        entry = processes.process(pid)
        if entry is None or entry.is_dead:
            continue
        found.update(_judge_warden(entry) if entry.name.encode() == NAME else _judge_marked(entry))
    return [Orphan(pid, _cmdline(pid), reason) for pid, reason in sorted(found.items())]


def servers_of(shims: Collection[int]) -> list[int]:
    """The processes of the upstream trees behind these shims, by pid."""
    found = []
    for pid in processes.pids():
        entry, marker = processes.process(pid), _marker(pid)
        if entry and not entry.is_dead and marker and marker[0] in shims:
            found.append(pid)
    return found


def _judge_warden(warden: processes.Process) -> dict[int, str]:
    # A warden is a fork of its shim: while that lives, parent and child have one command line.
    if _cmdline(warden.parent) == _cmdline(warden.pid):
        return {}
    return {warden.pid: "its shim is gone"}


def _judge_marked(entry: processes.Process) -> dict[int, str]:
    """Judges a process by the marker it inherited: upstream without shim, shim without client."""
    marker = _marker(entry.pid)
    if marker is None:
        return {}
    shim_pid, start_ticks, client = marker
    shim = processes.process(shim_pid)
    if shim is None or shim.is_dead or shim.start_ticks != start_ticks:
        return {entry.pid: f"its shim (process {shim_pid}) is gone"}
    if shim.parent != client:
        return {shim_pid: f"its client (process {client}) is gone"}
    return {}


def _marker(pid: int) -> tuple[int, int, int] | None:
    name = os.fsencode(SHIM_ID) + b"="
    for variable in processes.read(pid, "environ").split(b"\0"):
        if variable.startswith(name):
            fields = variable.removeprefix(name).split(b".")
            if len(fields) == 3 and all(field.isdigit() for field in fields):
                return int(fields[0]), int(fields[1]), int(fields[2])
    return None


def _cmdline(pid: int) -> str:
    return os.fsdecode(processes.read(pid, "cmdline").rstrip(b"\0").replace(b"\0", b" "))
