"""What the door must know about a client, and the names of tools that several clients share."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from subluminal.adapters.agent_hooks.events import Event, Kind, Members
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

    def kind_of(self, event_name: str | None) -> Kind:
        """Returns what an event tells."""
        if event_name == PROBE:
            return Kind.PROBE
        return self.kinds.get(event_name or "", Kind.OTHER)


def speller(kept: str, other: str) -> Callable[[str], str]:
    """Returns how a client spells names: letters, digits and `kept` stay, others become `other`."""
    return lambda name: "".join(
        char if char.isascii() and (char.isalnum() or char in kept) else other for char in name
    )


def split_name(
    full: str, prefix: str, joint: str, servers: Iterable[str], spell: Callable[[str], str]
) -> ToolName | None:
    """Splits the name of an MCP tool, with the longest server name that fits; None if none does.

    `spell` returns a server's name as the client spells it in names of tools.
    """
    for server in sorted(servers, key=len, reverse=True):
        start = f"{prefix}{spell(server)}{joint}"
        if full.startswith(start) and len(full) > len(start):
            return ToolName(server, full[len(start) :])
    return None
