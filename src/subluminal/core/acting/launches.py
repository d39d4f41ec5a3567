"""Launches: what `sub run` says about the agent that it starts, sealed, as long as it runs.

    $SUB_HOME/state/launches/PID      one sealed file per `sub run` that names an agent, or that an
                                      agent runs

A process belongs to the launch of its nearest ancestor that has one. So a cleared environment loses
nothing, and a process that only sets SUB_RUN_ID or SUB_AGENT_ID gains nothing. On Linux `sub run`
adopts what its agent leaves behind, and every process that the agent started has it as an ancestor.
On other systems a process that has lost its parent belongs to no launch.

An agent may remove or damage the file of its own launch. It must not become the agent above by
that, so on Linux each `sub run` with a launch has a name of its own among the processes.
"""

import os
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from subluminal.config.places import Places, make_private_dir
from subluminal.core.acting.attested import Attested
from subluminal.core.controls.sealed import read_sealed, seal_key, write_sealed
from subluminal.state.processes import start_time
from subluminal.system import LINUX
from subluminal.system.adoption import set_name
from subluminal.system.processes import Process, boot_id, process, table

_PURPOSE = "launch"
_MAX_BYTES = 1 << 20
_NAME = "sub-run"
"""Name of every process that has noted a launch; another process cannot change it."""
MAX_DEPTH = 64
"""Most agents that may hand work on to each other."""


class Launch(Struct, frozen=True, kw_only=True):
    """An agent as `sub run` started it."""

    run_id: str
    """the run; empty if the agent has none that we know"""
    agent_id: str
    """name of the agent"""
    is_launched: bool = False
    """whether `sub run --agent-id` named the agent; else the name is only said"""
    environment: str | None = None
    """environment of the run; None if nobody knows it"""
    attested: Attested | None = None
    """what the token proves that `sub run` was given; None if it was given none"""
    parent: "Launch | None" = None
    """the agent that handed the work on; None if a person or a program started this one"""
    pid: int = 0
    """process of `sub run`"""
    born: int = 0
    """when that process started, in the system's own unit"""
    boot: str = ""
    """the boot in which it did"""

    @property
    def depth(self) -> int:
        """The number of agents that handed the work on."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def agent_ids(self) -> list[str]:
        """This agent and those that handed the work on to it."""
        return [self.agent_id, *([] if self.parent is None else self.parent.agent_ids)]


_decode = msgspec.json.Decoder(Launch).decode


def note_launch(places: Places, launch: Launch) -> str:
    """Seals what this process launches; returns the file, to be removed at the end.

    Raises OSError.
    """
    pid = os.getpid()
    noted = msgspec.structs.replace(launch, pid=pid, born=start_time(pid) or 0, boot=boot_id())
    directory = make_private_dir(launches_dir(places))
    _forget_dead(directory)
    path = os.path.join(directory, str(pid))
    write_sealed(path, seal_key(places.state), _PURPOSE, msgspec.json.encode(noted))
    set_name(_NAME.encode())
    return path


def forget_launch(path: str) -> None:
    """Removes a launch that is over."""
    try:
        os.unlink(path)
    except OSError:
        return  # another process removed it, or the disk became read-only


def launch_around(places: Places) -> Launch | None:
    """Returns the launch that this process belongs to; None if there is none."""
    pids = _noted(launches_dir(places))
    if not pids:
        return None
    for entry in ancestors(os.getpid()):
        if entry.pid in pids:
            found = _read(places, entry.pid)
            if found is not None and found.born == entry.start:
                return found
        if entry.name == _NAME:
            return None  # the file of its launch was removed or damaged
    return None


def ancestors(pid: int) -> Iterator[Process]:
    """Yields a process, its parent, and so on, as far as they are visible."""
    find = process if LINUX else table().get
    while pid > 1:
        entry = find(pid)
        if entry is None:
            return
        yield entry
        pid = entry.parent


def launches_dir(places: Places) -> str:
    """Returns the directory of the launches."""
    return os.path.join(places.state, "launches")


def _noted(directory: str) -> set[int]:
    try:
        return {int(name) for name in os.listdir(directory) if name.isdecimal()}
    except OSError:
        return set()


def _read(places: Places, pid: int) -> Launch | None:
    """Returns the launch of a process; None if there is none that this home has sealed."""
    try:
        key = seal_key(places.state)
        data = read_sealed(os.path.join(launches_dir(places), str(pid)), key, _PURPOSE, _MAX_BYTES)
        found = None if data is None else _decode(data)
    except (OSError, msgspec.MsgspecError):
        return None
    is_its = found is not None and (found.pid, found.boot) == (pid, boot_id())
    return found if is_its else None


def _forget_dead(directory: str) -> None:
    """Removes the launches of processes that are dead."""
    for pid in _noted(directory):
        if start_time(pid) is None:
            forget_launch(os.path.join(directory, str(pid)))
