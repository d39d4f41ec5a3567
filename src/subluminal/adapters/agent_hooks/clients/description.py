"""What the door must know about a client, how its events are read, and names of MCP tools."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from subluminal.adapters.agent_hooks.events import (
    Call,
    Event,
    Kind,
    Members,
    Reserved,
    Unreadable,
)
from subluminal.adapters.agent_hooks.wire import Answer

PROBE = "SubDoctor"
"""The event that `sub doctor` sends; no client has one of this name."""


class ToolName(NamedTuple):
    """A tool and its server. Tools of the client itself belong to the server `@CLIENT`."""

    server_name: str
    tool_name: str


class Keys(NamedTuple):
    """The members of a client's events that are not named alike everywhere."""

    session: str = "session_id"
    tool: str = "tool_name"
    args: str = "tool_input"
    result: str = "tool_response"
    call_id: str | None = None
    """None if the client does not tell the model's id of a call"""


class HookClient(Struct, frozen=True, kw_only=True):
    """One client with hooks."""

    name: str
    kinds: Mapping[str, Kind]
    """what its events tell, by their names"""
    tool_of: Callable[[str, Members, Iterable[str]], ToolName | None]
    """finds the MCP tool of a call by its name in an event, the event, and the names of the servers
    in the client's configuration; None for a tool of the client itself"""
    refuse: Callable[[str, bool], Answer]
    """the answer that refuses a call with this text, and if True also stops the client, where it
    can be stopped"""
    ask: Callable[[str], Answer] | None = None
    """the answer that lets the client ask its person about a call; None if it cannot"""
    error_of: Callable[[Members], str | None] = lambda members: members.text("error")
    """why a call failed, by the event after it; None if it did not"""
    keys: Keys = Keys()
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

    def read(self, kind: Kind, members: Members, servers: Iterable[str]) -> Event:
        """Reads one event. `servers` are those in the client's configuration."""
        error = self.error_of(members) if kind is Kind.AFTER else None
        return Event(
            kind=kind,
            session=members.text(self.keys.session),
            cwd=members.text("cwd"),
            call=self._call(members, servers) if kind in (Kind.BEFORE, Kind.AFTER) else None,
            result=members.raw(self.keys.result),
            error=error,
            is_cancelled=error is not None and members.value("is_interrupt") is True,
            prompt=members.raw("prompt"),
        )

    def _call(self, members: Members, servers: Iterable[str]) -> Call:
        keys = self.keys
        full = members.text(keys.tool) or "?"
        server_name, tool_name = self.tool_of(full, members, servers) or (f"@{self.name}", full)
        return Call(
            server_name=server_name,
            tool_name=tool_name,
            args=members.args(keys.args),
            args_raw=members.raw(keys.args),
            call_id=None if keys.call_id is None else members.text(keys.call_id),
        )


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


def double_underscore_name(
    full: str, servers: Iterable[str], spell: Callable[[str], str]
) -> ToolName | None:
    """Splits `mcp__SERVER__TOOL`; None if it is not the name of an MCP tool.

    A server that no configuration names, such as a plugin's, ends at the first joint.
    """
    prefix, joint = "mcp__", "__"
    if not full.startswith(prefix):
        return None
    found = split_name(full, prefix, joint, servers, spell)
    if found is not None:
        return found
    server, _, tool = full.removeprefix(prefix).partition(joint)
    return served_by(server, tool) if server and tool else None
