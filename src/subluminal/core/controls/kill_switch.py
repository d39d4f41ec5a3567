"""The kill switch as one process sees it: the stops, read again when their number moves.

Every change of a stop moves the number in `generation` (`stops`), which every process has mapped
into its memory. While nothing is stopped, a call costs one comparison with that number. A stop
holds from the next call on in every process, survives restarts, and needs no daemon. An agent that
was revoked is found the same way.
"""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from subluminal.core.controls.stops import (
    GENERATION,
    REVOKED,
    Stop,
    hard_stop_of_server,
    kill_directory,
    names_of_run,
    read_stops,
    stop_name,
)
from subluminal.state.generation import WORD_BYTES, Generation

_MAX_CACHED = 512
_seek, _END = os.lseek, os.SEEK_END


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
        self._path = os.path.join(kill_directory(state_dir), GENERATION)
        self.generation: Generation | None = None
        self.words: Any = [0]
        """`words[0]` is the number, which moves when a stop is set or lifted"""
        self.known = Known(None, {}, "")
        self._views: list[StopView] = []
        self.look()

    def view(self, run_id: str, agent_id: str, *above: str) -> "StopView":
        """Returns the stops of one run; `above` are agents that handed the work on."""
        view = StopView(self, run_id, (agent_id, *above))
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
            stops = read_stops(self.state_dir)
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

    def __init__(self, switch: KillSwitch, run_id: str, agent_ids: Sequence[str]) -> None:
        self._switch = switch
        self._names = names_of_run(run_id, agent_ids[0])
        self._agent_ids = tuple(dict.fromkeys(agent_ids))
        self._revoked: tuple[Known, Stop | None] | None = None
        """what stops a revoked agent, and the stops that were known when it was looked for"""
        self._tool_names: dict[tuple[str, str], list[str]] = {}
        self.words = switch.words
        self.calm: int | None = None
        """the number at which no stop concerned this run; None while one does"""

    def make_safe(self) -> None:
        """Makes it safe to read `words`: maps the file again if somebody has cut it."""
        generation = self._switch.generation
        # `Generation.is_whole`, inlined: every call passes here.
        if generation is not None and _seek(generation.fd, 0, _END) < WORD_BYTES:
            self._switch.look()

    def find(self, server_name: str, tool_name: str) -> Stop | None:
        """Returns the stop that covers a call, the widest first, or None."""
        known = self._switch.look()
        self.words = self._switch.words
        stop = self._whole(known) or self._revocation(known)
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
            why = f"`{kill_directory(self._switch.state_dir)}` cannot be read: {known.problem}"
            return Stop("all", "", "", "", "", hard=False, switch_id="", problem=why)
        for name in self._names:
            stop = known.stops.get(name)
            if stop is not None:
                return stop
        return None

    def _revocation(self, known: "Known") -> Stop | None:
        """Returns what stops the run because one of its agents is revoked, or None."""
        # The registry moves the same number, so it is read as often as the stops.
        if self._revoked is None or self._revoked[0] is not known:
            self._revoked = known, _revoked_among(self._switch.state_dir, self._agent_ids)
        return self._revoked[1]

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
        return hard_stop_of_server(known.stops, server_name)


def _revoked_among(state_dir: str, agent_ids: Sequence[str]) -> Stop | None:
    """Returns the stop of the first of these agents that is revoked, or None."""
    if not any(os.path.lexists(os.path.join(state_dir, name)) for name in ("agents", "revoked")):
        return None  # most homes have no registry, and need not load it
    from subluminal.core.controls.agents import is_revoked

    for agent_id in agent_ids:
        if is_revoked(state_dir, agent_id):
            return Stop(REVOKED, agent_id, "", "", "", hard=False, switch_id="")
    return None
