"""The files of the kill switch: what a person has stopped.

    $SUB_HOME/state/kill/run-RUN  agent-AGENT  tool-SERVER%2f.TOOL  all      one file per stop
                         generation                                          a number

Every change moves the number in `generation` (`kill_switch`), and so does every change of the
registry of agents. A file whose seal is broken still stops what its name says: damaging a file must
not lift a stop.

This module imports little, so that `sub kill` is fast.
"""

import os
from typing import NamedTuple

from subluminal.clock import now, rfc3339
from subluminal.config.places import encode_name, make_private_dir
from subluminal.config.private_files import is_aside
from subluminal.core.controls.sealed import SealBroken, seal_key, unseal, write_sealed
from subluminal.state.generation import move

SCOPES = ("run", "agent", "tool", "all")
"""The values of contracts.vocabulary.StopScope, which this module does not load."""

GENERATION = "generation"
_PURPOSE = "kill"
REVOKED = "revoked"
"""Scope of what stops a revoked agent. `sub kill` and `sub revive` do not have it."""


class Stop(NamedTuple):
    """One thing that a person has stopped."""

    scope: str
    target: str
    """run_id, agent_id, SERVER/TOOL; empty for `all`"""
    by: str
    reason: str
    at: str
    hard: bool
    """whether the processes of servers are ended too"""
    switch_id: str
    problem: str = ""
    """why the file cannot be trusted, or empty; if set, only the file's name counts"""

    @property
    def name(self) -> str:
        """The name of its file."""
        return stop_name(self.scope, self.target)

    @property
    def sentence(self) -> str:
        """A sentence that says who set the stop and why, for the agent and for the record."""
        if self.problem:
            return f"a stop is set, but its file cannot be trusted: {self.problem}"
        what = {"run": "this run", "agent": "this agent", "tool": "this tool", "all": "all runs"}
        why = f": {self.reason}" if self.reason else ""
        if self.scope == REVOKED:
            return f"the agent `{self.target}` is revoked, and a revoked agent never returns"
        return f"{self.by} stopped {what[self.scope]} with `sub kill`{why}"


def stop_name(scope: str, target: str) -> str:
    """Returns the name of a stop's file."""
    return "all" if scope == "all" else f"{scope}-{encode_name(target)}"


def set_stop(state_dir: str, scope: str, target: str, *, by: str, reason: str, hard: bool) -> Stop:
    """Sets a stop: once this returns, no process allows such a call any more. Raises OSError."""
    path = os.path.join(make_private_dir(kill_directory(state_dir)), stop_name(scope, target))
    before = _read(path, seal_key(state_dir))
    stop = Stop(
        scope=scope,
        target=target,
        by=by,
        reason=reason,
        at=rfc3339(now().wall_ms),
        hard=hard or (before is not None and before.hard),
        switch_id=os.urandom(8).hex(),
    )
    import json  # not needed by a shim while nothing is stopped

    data = json.dumps(stop._asdict()).encode()
    write_sealed(path, seal_key(state_dir), _PURPOSE, data)
    # INVARIANT: the number moves after the file is in place. A process that sees the new number
    # sees the file.
    announce(state_dir)
    return stop


def lift_stop(state_dir: str, scope: str, target: str) -> Stop | None:
    """Lifts a stop and returns it; None if it is not set. Raises OSError."""
    path = os.path.join(kill_directory(state_dir), stop_name(scope, target))
    stop = _read(path, seal_key(state_dir))
    if stop is None:
        return None
    os.unlink(path)
    announce(state_dir)
    return stop._replace(scope=scope, target=target)


def announce(state_dir: str) -> None:
    """Tells every process to read again what it knows of stops and agents. Raises OSError."""
    move(os.path.join(make_private_dir(kill_directory(state_dir)), GENERATION))


def stops(state_dir: str) -> list[Stop]:
    """Returns every stop that is set. Raises OSError."""
    return list(read_stops(state_dir).values())


def stopped_runs(state_dir: str) -> list[str]:
    """Returns the runs that are stopped by their id, each as `encode_name` writes it."""
    try:
        files = os.listdir(kill_directory(state_dir))
    except OSError:
        return []
    return [file[4:] for file in files if file.startswith("run-") and not is_aside(file)]


def stop_of_run(state_dir: str, run_id: str, agent_id: str) -> Stop | None:
    """Returns the stop that covers a whole run, or None. Raises OSError."""
    found = read_stops(state_dir)
    return next((found[name] for name in names_of_run(run_id, agent_id) if name in found), None)


def hard_stop(state_dir: str, run_id: str, agent_id: str, server_name: str) -> Stop | None:
    """Returns the stop because of which a server must not start, or None. Raises OSError."""
    found = read_stops(state_dir)
    whole = [found[name] for name in names_of_run(run_id, agent_id) if name in found]
    return next((stop for stop in whole if stop.hard), None) or hard_stop_of_server(
        found, server_name
    )


def hard_stop_of_server(found: dict[str, Stop], server_name: str) -> Stop | None:
    prefix = f"{server_name}/"
    for stop in found.values():
        if stop.scope == "tool" and stop.hard and stop.target.startswith(prefix):
            return stop
    return None


def why_stopped(state_dir: str, run_id: str, agent_id: str) -> str:
    """Returns who stopped a whole run and why; empty if nobody did.

    If the stops cannot be read, everything is stopped.
    """
    try:
        stop = stop_of_run(state_dir, run_id, agent_id)
    except OSError as error:
        return f"the stops cannot be read: {(error.strerror or str(error)).lower()}"
    return "" if stop is None else stop.sentence


def names_of_run(run_id: str, agent_id: str) -> tuple[str, str, str]:
    """Returns the files of the stops that cover a whole run, the widest first."""
    return "all", stop_name("agent", agent_id), stop_name("run", run_id)


def kill_directory(state_dir: str) -> str:
    """Returns the directory of the stops."""
    return os.path.join(state_dir, "kill")


def read_stops(state_dir: str) -> dict[str, Stop]:
    """Returns every stop by the name of its file. Raises OSError."""
    directory = kill_directory(state_dir)
    try:
        files = os.listdir(directory)
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        if not os.path.isdir(state_dir):
            return {}  # there is no home, so nothing can be stopped in it
        raise
    found: dict[str, Stop] = {}
    for file in files:
        if file == GENERATION or is_aside(file):
            continue
        stop = _read(os.path.join(directory, file), seal_key(state_dir))
        if stop is not None:
            # A sealed file says what it stops; if the seal is broken, the file's name does.
            found[_known_name(file) if stop.problem else stop.name] = stop
    return found


def _known_name(file: str) -> str:
    """Returns what a file with a broken seal stops: what its name says, or everything."""
    return file if file.partition("-")[0] in SCOPES[:-1] else "all"


def _read(path: str, key: bytes) -> Stop | None:
    """Returns the stop in a file; None if the file does not exist."""
    import json

    try:
        return Stop(**json.loads(unseal(path, key, _PURPOSE)))
    except FileNotFoundError:
        return None
    except SealBroken:
        problem = f"`{path}` was edited, or another home wrote it"
    except OSError as error:
        problem = f"`{path}`: {(error.strerror or str(error)).lower()}"
    except (ValueError, TypeError):
        problem = f"`{path}` was written by another version of sub"
    return Stop("all", "", "", "", "", hard=False, switch_id="", problem=problem)
