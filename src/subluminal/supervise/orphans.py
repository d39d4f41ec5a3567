"""Finds processes by their shim: left behind (`sub doctor`), or still running (`sub kill`).

Every process of an upstream's tree has `SUBLUMINAL_SHIM_ID` in its environment. Deputies and
wardens have a name on Linux, and elsewhere the command line of their shim. Only processes of the
same user are found. This module ends no process.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

from subluminal.supervise.serving import NAMES
from subluminal.supervise.tree import SHIM_ID
from subluminal.system import LINUX
from subluminal.system.processes import Process, commands, table, variables

_INIT = 1


class Orphan(NamedTuple):
    """A process that should have ended."""

    pid: int
    reason: str


def find_orphans() -> list[Orphan]:
    """Lists wardens and upstream processes without a shim, and shims without a client, by pid.

    A warden takes up to three seconds to end a tree, and its deputy three more; a process that is
    still there later is stuck.
    """
    everyone, lines = _living(), commands()
    found: dict[int, str] = {}
    for entry in everyone.values():
        if _has_lost_its_shim(entry, everyone, lines):
            found[entry.pid] = "its shim is gone"
    for pid, marker in _markers().items():
        if pid in everyone:
            found.update(_judge_marked(pid, marker, everyone))
    return [Orphan(pid, reason) for pid, reason in sorted(found.items())]


def servers_of(shims: Collection[int]) -> list[int]:
    """Lists the pids of the upstream processes of these shims."""
    everyone = _living()
    return [pid for pid, marker in _markers().items() if marker[0] in shims and pid in everyone]


def _has_lost_its_shim(
    entry: Process, everyone: dict[int, Process], lines: dict[int, list[bytes]]
) -> bool:
    """Judges a deputy or warden, which are forks of their shim and have its command line."""
    line = lines.get(entry.pid)
    if LINUX:
        if entry.name not in NAMES:
            return False
    elif not line or b"shim" not in line or b"stdio" not in line:
        return False
    else:
        # A shim without a client looks the same, and should have ended too.
        return entry.parent == _INIT
    # The parent of a warden is its deputy, and the deputy's parent is the shim.
    while entry.name in NAMES:
        parent = everyone.get(entry.parent)
        if parent is None or lines.get(parent.pid) != line:
            return True
        entry = parent
    return False


def _judge_marked(
    pid: int, marker: tuple[int, int, int], everyone: dict[int, Process]
) -> dict[int, str]:
    """Judges a process, and its shim, by the `SUBLUMINAL_SHIM_ID` that the process inherited."""
    shim_pid, start, client = marker
    shim = everyone.get(shim_pid)
    if shim is None or start not in (0, shim.start):
        return {pid: f"its shim (process {shim_pid}) is gone"}
    if shim.parent != client:
        return {shim_pid: f"its client (process {client}) is gone"}
    return {}


def _living() -> dict[int, Process]:
    return {pid: entry for pid, entry in table().items() if not entry.is_dead}


def _markers() -> dict[int, tuple[int, int, int]]:
    """Returns the `SUBLUMINAL_SHIM_ID` of every process that has one: shim, its start, client."""
    found = {}
    for pid, text in variables(os.fsencode(SHIM_ID)).items():
        fields = text.split(b".")
        if len(fields) == 3 and all(field.isdigit() for field in fields):
            found[pid] = (int(fields[0]), int(fields[1]), int(fields[2]))
    return found
