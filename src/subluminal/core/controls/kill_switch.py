"""The kill switch: runs, agents and tools that a person has stopped (shared-runs).

    $SUB_HOME/state/kill/run-RUN  agent-AGENT  tool-SERVER%2f.TOOL  all      one file per stop
                         generation                                          a number

Every change moves the number in `generation`, which every process has mapped into its memory. While
nothing is stopped, a call costs one comparison with that number. A stop holds from the next call on
in every process, survives restarts, and needs no daemon. A file whose seal is broken still stops
what its name says: damaging a file must not lift a stop.

This module imports little, so that `sub kill` is fast.
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
        return f"{self.by} stopped {what[self.scope]} with `sub kill`{why}"


def stop_name(scope: str, target: str) -> str:
    """Returns the name of a stop's file."""
    return "all" if scope == "all" else f"{scope}-{encode_name(target)}"


def set_stop(state_dir: str, scope: str, target: str, *, by: str, reason: str, hard: bool) -> Stop:
    """Sets a stop: once this returns, no process allows such a call any more. Raises OSError."""
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
    import json  # not needed by a shim while nothing is stopped

    data = json.dumps(stop._asdict()).encode()
    write_sealed(path, seal_key(state_dir), _PURPOSE, data)
    # INVARIANT: the number moves after the file is in place. A process that sees the new number
    # sees the file.
    move(os.path.join(_directory(state_dir), _GENERATION))
    return stop


def lift_stop(state_dir: str, scope: str, target: str) -> Stop | None:
    """Lifts a stop and returns it; None if it is not set. Raises OSError."""
    path = os.path.join(_directory(state_dir), stop_name(scope, target))
    stop = _read(path, seal_key(state_dir))
    if stop is None:
        return None
    os.unlink(path)
    move(os.path.join(_directory(state_dir), _GENERATION))
    return stop._replace(scope=scope, target=target)


def stops(state_dir: str) -> list[Stop]:
    """Returns every stop that is set. Raises OSError."""
    return list(_all(state_dir).values())


def stopped_runs(state_dir: str) -> list[str]:
    """Returns the runs that are stopped by their id, each as `encode_name` writes it."""
    try:
        files = os.listdir(_directory(state_dir))
    except OSError:
        return []
    return [file[4:] for file in files if file.startswith("run-") and not file.endswith(_ASIDE)]


def stop_of_run(state_dir: str, run_id: str, agent_id: str) -> Stop | None:
    """Returns the stop that covers a whole run, or None. Raises OSError."""
    found = _all(state_dir)
    return next((found[name] for name in _names_of_run(run_id, agent_id) if name in found), None)


def hard_stop(state_dir: str, run_id: str, agent_id: str, server_name: str) -> Stop | None:
    """Returns the stop because of which a server must not start, or None. Raises OSError."""
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


def why_stopped(state_dir: str, run_id: str, agent_id: str) -> str:
    """Returns who stopped a whole run and why; empty if nobody did.

    If the stops cannot be read, everything is stopped.
    """
    try:
        stop = stop_of_run(state_dir, run_id, agent_id)
    except OSError as error:
        return f"the stops cannot be read: {(error.strerror or str(error)).lower()}"
    return "" if stop is None else stop.sentence


class Known(NamedTuple):
    """The stops that a process has read."""

    number: int | None
    """the number when they were read; None if it does not reveal every change"""
    stops: dict[str, Stop]
    """the stops by the names of their files"""
    problem: str
    """why the stops cannot be read, or empty; if set, everything is stopped"""


class KillSwitch:
    """The stops as one process knows them. `view` selects those of one run."""

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        self._path = os.path.join(_directory(state_dir), _GENERATION)
        self.generation: Generation | None = None
        self.words: Any = [0]
        """`words[0]` is the number, which moves when a stop is set or lifted"""
        self.known = Known(None, {}, "")
        self._views: list[StopView] = []
        self.look()

    def view(self, run_id: str, agent_id: str) -> "StopView":
        """Returns the stops of one run."""
        view = StopView(self, run_id, agent_id)
        self._views.append(view)
        return view

    def forget(self, view: "StopView") -> None:
        """Drops the view of a run that this process has left."""
        self._views.remove(view)

    def look(self) -> "Known":
        """Returns the stops; reads them again if the number moved, or is not available."""
        self._watch()
        known, number = self.known, self.words[0]
        if number == known.number:
            return known
        # INVARIANT: the number was read before the stops. A stop that is set in between moves the
        # number, so the stops are read again. And they are stored with their number in one step:
        # a thread that was slower leaves an older pair, which the next look replaces.
        try:
            stops = _all(self.state_dir)
            known = Known(None if self.generation is None else number, stops, "")
        except OSError as error:
            known = Known(None, known.stops, (error.strerror or str(error)).lower())
        self.known = known
        return known

    def check(self) -> None:
        """Checks that the mapped file is still the one that other processes change."""
        generation = self.generation
        if generation is not None and not generation.is_current():
            self.close()
            self.look()

    def close(self) -> None:
        """Lets go of the mapped file; it stays mapped until no thread reads its number any more."""
        self._adopt([0], None)
        self.known = self.known._replace(number=None)

    def _watch(self) -> None:
        """Maps the file, if it is not mapped or somebody has cut it."""
        if self.generation is not None:
            if self.generation.is_whole():
                return
            self.close()
        try:
            generation = Generation(self._path)
        except OSError:
            return  # every call then reads the directory
        self._adopt(generation.words, generation)

    def _adopt(self, words: Any, generation: Generation | None) -> None:
        self.words = words
        self.generation = generation
        for view in list(self._views):
            view.words, view.calm = words, None


class StopView:
    """The stops of one run. Before each call: `if view.words[0] != view.calm: view.find(…)`.

    `make_safe` comes before that.
    """

    def __init__(self, switch: KillSwitch, run_id: str, agent_id: str) -> None:
        self._switch = switch
        self._names = _names_of_run(run_id, agent_id)
        self._tool_names: dict[tuple[str, str], list[str]] = {}
        self.words = switch.words
        self.calm: int | None = None
        """the number at which no stop concerned this run; None while one does"""

    def make_safe(self) -> None:
        """Makes it safe to read `words`: maps the file again if somebody has cut it."""
        generation = self._switch.generation
        if generation is not None and not generation.is_whole():
            self._switch.look()

    def find(self, server_name: str, tool_name: str) -> Stop | None:
        """Returns the stop that covers a call, the widest first, or None."""
        known = self._switch.look()
        self.words = self._switch.words
        stop = self._whole(known)
        if stop is not None:
            return stop
        if not any(name.startswith("tool-") for name in known.stops):
            self.calm = known.number
            return None
        for name in self._names_of_tool(server_name, tool_name):
            stop = known.stops.get(name)
            if stop is not None:
                return stop
        return None

    def _whole(self, known: "Known") -> Stop | None:
        """Returns the stop that covers the whole run, or None."""
        if known.problem:
            why = f"`{_directory(self._switch.state_dir)}` cannot be read: {known.problem}"
            return Stop("all", "", "", "", "", hard=False, switch_id="", problem=why)
        for name in self._names:
            stop = known.stops.get(name)
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
        """Returns the hard stop that ends a server's process as far as this run goes, or None."""
        known = self._switch.known
        stop = self._whole(known)
        if stop is not None and stop.hard:
            return stop
        return _hard_stop_of_server(known.stops, server_name)


def _names_of_run(run_id: str, agent_id: str) -> tuple[str, str, str]:
    return "all", stop_name("agent", agent_id), stop_name("run", run_id)


def _directory(state_dir: str) -> str:
    return os.path.join(state_dir, "kill")


def _all(state_dir: str) -> dict[str, Stop]:
    """Returns every stop by the name of its file. Raises OSError."""
    directory = _directory(state_dir)
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
        if file == _GENERATION or file.endswith(_ASIDE):
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
