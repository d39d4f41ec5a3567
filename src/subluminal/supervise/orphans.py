"""Finds processes by their shim: left behind (`sub doctor`), or still running (`sub kill`).

Every process of an upstream's tree has `SUBLUMINAL_SHIM_ID` in its environment, and a warden is
named `sub-warden`. Only processes of the same user are visible, and only on Linux; elsewhere
nothing is found. This module ends no process.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

from subluminal.supervise import processes
from subluminal.supervise.handle import SHIM_ID
from subluminal.supervise.serving import NAME


class Orphan(NamedTuple):
    """A process that should have ended."""

    pid: int
    reason: str


def find_orphans() -> list[Orphan]:
    """Lists wardens and upstream processes without a shim, and shims without a client, by pid.

    A warden takes up to three seconds to end a tree; a process that is still there later is stuck.
    """
    found: dict[int, str] = {}
    for pid in processes.pids():
        entry = processes.process(pid)
        if entry is None or entry.is_dead:
            continue
        found.update(_judge_warden(entry) if entry.name.encode() == NAME else _judge_marked(entry))
    return [Orphan(pid, reason) for pid, reason in sorted(found.items())]


def servers_of(shims: Collection[int]) -> list[int]:
    """Lists the pids of the upstream processes of these shims."""
    found = []
    for pid in processes.pids():
        entry, marker = processes.process(pid), _marker(pid)
        if entry and not entry.is_dead and marker and marker[0] in shims:
            found.append(pid)
    return found


def _judge_warden(warden: processes.Process) -> dict[int, str]:
    # A warden is a fork of its shim, so while the shim lives both have the same command line.
    if processes.read(warden.parent, "cmdline") == processes.read(warden.pid, "cmdline"):
        return {}
    return {warden.pid: "its shim is gone"}


def _judge_marked(entry: processes.Process) -> dict[int, str]:
    """Judges a process, and its shim, by the `SUBLUMINAL_SHIM_ID` that the process inherited."""
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
