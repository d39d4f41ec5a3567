"""What the door must know about a client, and the names of tools that several clients share."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from subluminal.adapters.agent_hooks.events import Event, Kind, Members, Reserved, Unreadable
from subluminal.adapters.agent_hooks.wire import Answer

PROBE = "SubDoctor"
"""The event that `sub doctor` sends; no client has one of this name."""


class ToolName(NamedTuple):
    """A tool and its server. Tools of the client itself belong to the server `@CLIENT`."""

    server_name: str
    tool_name: str


class HookClient(Struct, frozen=True, kw_only=True):
    """One client with hooks."""

    name: str
    kinds: Mapping[str, Kind]
    """what its events tell, by their names"""
    read: Callable[[Kind, Members, Iterable[str]], Event]
    """reads one event; gets the names of the servers in the client's configuration"""
    refuse: Callable[[str, bool], Answer]
    """the answer that refuses a call with this text, and if True also stops the client, where it
    can be stopped"""
    ask: Callable[[str], Answer] | None = None
    """the answer that lets the client ask its person about a call; None if it cannot"""
    event_key: str = "hook_event_name"
    """the member that names the event; the command line goes first"""
    names_run: bool = True
    """whether the session id names the run. If not, the client's process does, as for stdio shims,
    which do not learn the session id of these clients."""
    sends_ids: bool = True
    """whether the client sends the model's call id to MCP servers too"""
    spell: Callable[[str], str] | None = None
    """how the client spells names of MCP tools in its events; None if exactly"""

    def kind_of(self, told: str, members: Members) -> Kind:
        """Returns what an event tells. `told` is its name on the command line, or empty.

        Raises Unreadable if the event has no name: it may be the one before a call.
        """
        name = told or members.text(self.event_key)
        if name is None:
            raise Unreadable("the client's event has no name")
        return Kind.PROBE if name == PROBE else self.kinds.get(name, Kind.OTHER)


def speller(kept: str, other: str) -> Callable[[str], str]:
    """Returns how a client spells names: letters, digits and `kept` stay, others become `other`."""
    return lambda name: "".join(
        char if char.isascii() and (char.isalnum() or char in kept) else other for char in name
    )


def split_name(
    full: str, prefix: str, joint: str, servers: Iterable[str], spell: Callable[[str], str]
) -> ToolName | None:
    """Splits the name of an MCP tool, with the longest server name that fits; None if none does.

    `spell` returns a server's name as the client spells it in names of tools. Raises Unreadable if
    two servers are spelled alike.
    """
    starts = {server: f"{prefix}{spell(server)}{joint}" for server in servers}
    fitting = [start for start in starts.values() if full.startswith(start) and full != start]
    if not fitting:
        return None
    start = max(fitting, key=len)
    server, *others = [server for server, each in starts.items() if each == start]
    if others:
        raise Unreadable(f"`{full}` may be a tool of `{server}` or of `{others[0]}`")
    return served_by(server, full[len(start) :])


def served_by(server_name: str, tool_name: str) -> ToolName:
    """Returns the tool of an MCP server. Raises Reserved if the server is named like a client.

    Rules about the client's own tools would hold for such a server.
    """
    if server_name.startswith("@"):
        raise Reserved(f"a server may not be named `{server_name}`: such names are the clients'")
    return ToolName(server_name, tool_name)
