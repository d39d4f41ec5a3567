"""The kill switch: what a person has stopped, in files that every shim knows of at once
(shared-runs).

    $SUB_HOME/state/kill/run-RUN  agent-AGENT  tool-SERVER%2f.TOOL  all      one for each stop
                         generation                                          moves with each change

A call costs one comparison while nothing is stopped. A stop holds from the next call on in every
process, survives restarts, and needs no daemon. A file that cannot be believed stops what its name
says: whoever may break it must not start anything by that.

Light to load: who pulls the switch does not want to wait.
"""

import os
from typing import Any, NamedTuple

from subluminal.clock import now, rfc3339
from subluminal.config.places import encode_name, make_private_dir
from subluminal.core.controls.sealed import SealBroken, seal_key, unseal, write_sealed
from subluminal.state.generation import Generation, move

SCOPES = ("run", "agent", "tool", "all")
"""The values of contracts.vocabulary.StopScope, which this module does not load."""

_GENERATION = "generation"
_ASIDE = ".aside"
_PURPOSE = "kill"
_MAX_CACHED = 512


class Stop(NamedTuple):
    """Something that a person has stopped."""

    scope: str
    target: str
    """run_id, agent_id, SERVER/TOOL; empty for `all`"""
    by: str
    reason: str
    at: str
    hard: bool
    """whether servers are to be stopped too"""
    switch_id: str
    problem: str = ""
    """why the file cannot be believed; then only its name counts"""

    @property
    def name(self) -> str:
        """The file's name."""
        return stop_name(self.scope, self.target)

    @property
    def sentence(self) -> str:
        """Who did it and why, for the agent and for the record."""
        if self.problem:
            return f"a stop is set, and its file cannot be believed: {self.problem}"
        what = {"run": "this run", "agent": "this agent", "tool": "this tool", "all": "all runs"}
        why = f": {self.reason}" if self.reason else ""
        return f"{self.by} stopped {what[self.scope]} with `sub kill`{why}"


def stop_name(scope: str, target: str) -> str:
    """The file's name of a stop."""
    return "all" if scope == "all" else f"{scope}-{encode_name(target)}"


def set_stop(state_dir: str, scope: str, target: str, *, by: str, reason: str, hard: bool) -> Stop:
    """Stops it: when this returns, no process decides for it any more. Raises OSError."""
    path = os.path.join(make_private_dir(_directory(state_dir)), stop_name(scope, target))
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
    import json  # what only reads no stops need not load it

    data = json.dumps(stop._asdict()).encode()
    write_sealed(path, seal_key(state_dir), _PURPOSE, data)
    # INVARIANT: moved after the file is there. Who sees the new number sees the file.
    move(os.path.join(_directory(state_dir), _GENERATION))
    return stop


def lift_stop(state_dir: str, scope: str, target: str) -> Stop | None:
    """Lifts a stop and returns it; None if there is none. Raises OSError."""
    path = os.path.join(_directory(state_dir), stop_name(scope, target))
    stop = _read(path, seal_key(state_dir))
    if stop is None:
        return None
    os.unlink(path)
    move(os.path.join(_directory(state_dir), _GENERATION))
    return stop._replace(scope=scope, target=target)


def stops(state_dir: str) -> list[Stop]:
    """Everything that is stopped. Raises OSError if nobody can tell."""
    return list(_all(state_dir).values())


def stopped_runs(state_dir: str) -> list[str]:
    """The runs that are stopped by name, as `encode_name` writes them."""
    try:
        files = os.listdir(_directory(state_dir))
    except OSError:
        return []
    return [file[4:] for file in files if file.startswith("run-") and not file.endswith(_ASIDE)]


def stop_of_run(state_dir: str, run_id: str, agent_id: str) -> Stop | None:
    """The stop that a whole run is under, if it is under one. Raises OSError."""
    found = _all(state_dir)
    return next((found[name] for name in _names_of_run(run_id, agent_id) if name in found), None)


def hard_stop(state_dir: str, run_id: str, agent_id: str, server_name: str) -> Stop | None:
    """The stop that keeps a server from being started. Raises OSError."""
    found = _all(state_dir)
    whole = [found[name] for name in _names_of_run(run_id, agent_id) if name in found]
    return next((stop for stop in whole if stop.hard), None) or _hard_stop_of_server(
        found, server_name
    )


def _hard_stop_of_server(found: dict[str, Stop], server_name: str) -> Stop | None:
    prefix = f"{server_name}/"
    for stop in found.values():
        if stop.scope == "tool" and stop.hard and stop.target.startswith(prefix):
            return stop
    return None


def is_run_stopped(state_dir: str, run_id: str, agent_id: str) -> bool:
    """Whether a whole run is stopped; where nobody can tell, it is."""
    try:
        return stop_of_run(state_dir, run_id, agent_id) is not None
    except OSError:
        return True


class KillSwitch:
    """The stops as one process knows them. `view` gives each of its runs its own."""

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        self._path = os.path.join(_directory(state_dir), _GENERATION)
        self._generation: Generation | None = None
        self.seen: int | None = None
        """the number at which the stops were read; None while it does not tell of every change"""
        self.words: Any = [0]
        """`words[0]` moves when a stop is set or lifted"""
        self.stops: dict[str, Stop] = {}
        self.problem = ""
        """why nobody knows what is stopped: then everything is"""
        self._views: list[StopView] = []
        self.look()

    def view(self, run_id: str, agent_id: str) -> "StopView":
        """The stops of one run."""
        view = StopView(self, run_id, agent_id)
        self._views.append(view)
        return view

    def forget(self, view: "StopView") -> None:
        """Lets go of a run that this process has left."""
        self._views.remove(view)

    def look(self) -> bool:
        """Reads the stops if they moved, or cannot be watched; True if others hold now."""
        self._watch()
        number = self.words[0]
        if number == self.seen:
            return False
        try:
            self.stops = _all(self.state_dir)
            self.problem = ""
        except OSError as error:
            self.problem = (error.strerror or str(error)).lower()
        # INVARIANT: the number was read before the stops. What came in between is read again.
        self.seen = None if self._generation is None or self.problem else number
        return True

    def check(self) -> None:
        """Now and then: whether the file that is watched is still the one that others move."""
        generation = self._generation
        if generation is not None and not generation.is_current():
            # The old file stays mapped until no thread looks at its number any more.
            self._generation = self.seen = None
            self.words = [0]
            self.look()
            for view in self._views:
                view.words, view.calm = self.words, None

    def close(self) -> None:
        """Lets go of the file."""
        if self._generation is not None:
            self._generation.close()
            self._generation = self.seen = None
            self.words = [0]

    def _watch(self) -> None:
        if self._generation is not None:
            return
        try:
            self._generation = Generation(self._path)
        except OSError:
            return  # each call then looks for itself
        self.words = self._generation.words


class StopView:
    """The stops of one run. Before each call: `if view.words[0] != view.calm: view.find(…)`."""

    def __init__(self, switch: KillSwitch, run_id: str, agent_id: str) -> None:
        self._switch = switch
        self._names = _names_of_run(run_id, agent_id)
        self._tool_names: dict[tuple[str, str], list[str]] = {}
        self.words = switch.words
        self.calm: int | None = None
        """the number at which nothing was stopped that concerns the run; None while something is"""

    def find(self, server_name: str, tool_name: str) -> Stop | None:
        """The stop that a call is under, the widest first."""
        switch = self._switch
        switch.look()
        self.words = switch.words
        stop = self.whole()
        if stop is not None:
            return stop
        if not any(name.startswith("tool-") for name in switch.stops):
            self.calm = switch.seen
            return None
        for name in self._names_of_tool(server_name, tool_name):
            stop = switch.stops.get(name)
            if stop is not None:
                return stop
        return None

    def whole(self) -> Stop | None:
        """The stop that the whole run is under, as of the last look."""
        switch = self._switch
        if switch.problem:
            why = f"`{_directory(switch.state_dir)}` cannot be read: {switch.problem}"
            return Stop("all", "", "", "", "", hard=False, switch_id="", problem=why)
        for name in self._names:
            stop = switch.stops.get(name)
            if stop is not None:
                return stop
        return None

    def _names_of_tool(self, server_name: str, tool_name: str) -> list[str]:
        found = self._tool_names.get((server_name, tool_name))
        if found is None:
            if len(self._tool_names) >= _MAX_CACHED:
                self._tool_names.clear()
            targets = (f"{server_name}/{tool_name}", f"{server_name}/*", f"*/{tool_name}")
            found = [stop_name("tool", target) for target in targets]
            self._tool_names[server_name, tool_name] = found
        return found

    def stops_server(self, server_name: str) -> Stop | None:
        """The hard stop that a server's process is under on behalf of this run."""
        stop = self.whole()
        if stop is not None and stop.hard:
            return stop
        return _hard_stop_of_server(self._switch.stops, server_name)


def _names_of_run(run_id: str, agent_id: str) -> tuple[str, str, str]:
    return "all", stop_name("agent", agent_id), stop_name("run", run_id)


def _directory(state_dir: str) -> str:
    return os.path.join(state_dir, "kill")


def _all(state_dir: str) -> dict[str, Stop]:
    """Every stop by its name. Raises OSError."""
    directory = _directory(state_dir)
    try:
        files = os.listdir(directory)
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        if not os.path.isdir(state_dir):
            return {}  # no home at all, so nobody can have stopped anything in it
        raise
    found: dict[str, Stop] = {}
    for file in files:
        if file == _GENERATION or file.endswith(_ASIDE):
            continue
        stop = _read(os.path.join(directory, file), seal_key(state_dir))
        if stop is not None:
            # One that can be believed says itself what it stops; else the file's name does.
            found[_known_name(file) if stop.problem else stop.name] = stop
    return found


def _known_name(file: str) -> str:
    """What an unbelievable file stops: what it is called after, else everything."""
    return file if file.partition("-")[0] in SCOPES[:-1] else "all"


def _read(path: str, key: bytes) -> Stop | None:
    """One stop; None if there is none."""
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
        problem = f"`{path}` is of another version of sub"
    return Stop("all", "", "", "", "", hard=False, switch_id="", problem=problem)
