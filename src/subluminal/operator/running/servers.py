"""Compares the servers that the agent's client starts with the shims that took part in the run.

A server that no shim spoke for is *silent*: what it was asked is not on record. The hooks of a
client speak for all its servers. Only a client that `sub import` knows has a configuration to
compare with.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from subluminal.config.places import recordable
from subluminal.counts import counted
from subluminal.errors import SubluminalError
from subluminal.journal.reading import Follower, Lines, files_in

if TYPE_CHECKING:
    from subluminal.importer.clients.description import Client
    from subluminal.importer.expected import Expectation, ExpectedServer

_HEAD_BYTES = 4_194_304
"""How much of a journal is searched for its server. A shim names it when it enters the run."""
_PIECE_BYTES = 65_536
_MAX_NAMED = 64
"""Most servers that are recorded by name."""
_MAX_TOLD = 16
"""Most servers that a sentence names."""
_MAX_NAME_CHARS = 200


class Silent(NamedTuple):
    """A server that no shim spoke for, or None for a file that could not be read; and why."""

    server: str | None
    why: str


class Servers:
    """What the client's configuration says about its servers, before and after the run."""

    def __init__(self, expectation: "Expectation | None", *, has_hooks: bool = False) -> None:
        """`expectation` is None if the client is not known.

        `has_hooks` says that the client is configured to run our hooks.
        """
        self._servers: dict[str, ExpectedServer] = {}
        self._problems: dict[str, None] = {}
        self.is_known = expectation is not None
        self._has_hooks = has_hooks
        self.client = "" if expectation is None else expectation.client.name
        """the name that `sub import` takes"""
        self.also(expectation)

    def also(self, expectation: "Expectation | None") -> None:
        """Adds what the configuration says later.

        A server that was not wrapped when the client started it stays unwrapped.
        """
        if expectation is not None:
            for each in expectation.servers:
                self._servers.setdefault(recordable(each.name)[:_MAX_NAME_CHARS], each)
            self._problems.update(dict.fromkeys(expectation.problems))

    def meta(self) -> dict[str, Any]:
        """Returns the names of the servers as `meta` of a run_start event."""
        return {"servers": sorted(self._servers)[:_MAX_NAMED]} if self.is_known else {}

    def warning(self, allowed: Collection[str]) -> str | None:
        """Returns what the run will not see; None if it will see everything."""
        unseen = [
            f"`{name}`"
            for name, each in sorted(self._servers.items())
            if not (each.is_wrapped or self._has_hooks or name in allowed)
        ]
        told = [f"it is not known which servers are wrapped: {each}" for each in self._problems]
        if unseen:
            wrapped = sum(each.is_wrapped for each in self._servers.values())
            servers = counted(len(self._servers), "server")
            calls = f"calls to {_listed(unseen)} will not be seen"
            told.insert(0, f"{wrapped} of {servers} wrapped; {calls}")
        return "; ".join(told) or None

    def silent(self, heard: frozenset[str]) -> list[Silent]:
        """Returns the servers that no shim spoke for, and the files that could not be read."""
        found = [Silent(None, each) for each in self._problems]
        if f"@{self.client}" in heard:
            return found
        names = [name for name in sorted(self._servers) if name not in heard]
        found += [Silent(name, self._servers[name].why) for name in names[:_MAX_NAMED]]
        if len(names) > _MAX_NAMED:
            found.append(Silent(None, f"{len(names) - _MAX_NAMED} more servers were not seen"))
        return found

    def hint(self) -> str:
        """Returns what to do about servers that are not seen."""
        if any(each.can_be_wrapped for each in self._servers.values()):
            return f"wrap them with `sub import {self.client}`"
        return f"`sub import {self.client} --check` says which servers are wrapped"


def runs_hooks(client: "Client", environ: Mapping[str, str], cwd: str) -> bool:
    """Returns True if a client is configured to run our hooks."""
    from subluminal.importer.clients.description import Scene
    from subluminal.importer.hooks.configured import configured_hooks

    try:
        return client.hooks is not None and bool(configured_hooks(client, Scene(environ, cwd), ""))
    except SubluminalError:
        return False


def told_silent(silent: list[Silent]) -> str:
    """Returns the servers, each with the reason."""
    told = [each.why if each.server is None else f"`{each.server}` ({each.why})" for each in silent]
    return _listed(told, "; ")


def _listed(names: list[str], comma: str = ", ") -> str:
    """Returns as many names as a person reads."""
    rest = len(names) - _MAX_TOLD
    return comma.join(names[:_MAX_TOLD]) + (f" and {rest} more" if rest > 0 else "")


def read_servers(
    client: str | None, command: list[str], environ: Mapping[str, str], cwd: str, home: str
) -> "Expectation | None":
    """Reads the configuration of the client: the named one, else the one that the command starts.

    Returns None if the client is not known. `home` is where the run is recorded.
    """
    from subluminal.importer.command_line import PROGRAMS, Started, find_client, read_options

    started = find_client(command)
    if client is not None and client in PROGRAMS.values():
        words = started.words if started is not None and started.client == client else []
        started = Started(client, words)
    if started is None:
        return None
    from subluminal.importer.clients.description import Scene
    from subluminal.importer.clients.table import CLIENTS
    from subluminal.importer.expected import expected_servers

    options = read_options(started)
    return expected_servers(CLIENTS[started.client], Scene(environ, cwd), home, options)


def heard_servers(directory: str, since: str) -> frozenset[str]:
    """Returns the servers of the shims that journalled in this directory.

    `since` is the id of our own shim. Ids are ordered by time, so shims with a lower id took part
    in an earlier part of the run.
    """
    shims: dict[str, str | None] = {}
    for file in sorted(files_in(directory, "")):
        if file.shim > since and not shims.get(file.shim):
            shims[file.shim] = _server_in(file.path)
    return frozenset(name for name in shims.values() if name)


class _Named(Struct, frozen=True):
    server_name: str | None = None


class _Line(Struct, frozen=True):
    health: _Named = _Named()
    call: _Named = _Named()


_decode = msgspec.json.Decoder(_Line).decode


def _server_in(path: str) -> str | None:
    """Returns the server that a journal names first."""
    try:
        follower = Follower(path)
    except OSError:
        return None  # ledgerd has read and removed it
    try:
        while (piece := follower.read(_PIECE_BYTES)) is not None and piece.offset < _HEAD_BYTES:
            for line in piece.lines if isinstance(piece, Lines) else ():
                name = _server_of(line)
                if name:
                    return name
    finally:
        follower.close()
    return None


def _server_of(line: bytes) -> str | None:
    if b'"server_name"' not in line:
        return None
    try:
        event = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return event.health.server_name or event.call.server_name
