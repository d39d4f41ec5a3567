"""Names of MCP tools in Claude Code and Codex: `mcp__SERVER__TOOL`."""

from collections.abc import Callable, Iterable

from subluminal.adapters.agent_hooks.clients.description import (
    ToolName,
    served_by,
    split_name,
)

_PREFIX, _JOINT = "mcp__", "__"


def tool_named(full: str, servers: Iterable[str], spell: Callable[[str], str]) -> ToolName | None:
    """Splits a name; None if it is not the name of an MCP tool.

    A server that no configuration names, such as a plugin's, ends at the first joint.
    """
    if not full.startswith(_PREFIX):
        return None
    found = split_name(full, _PREFIX, _JOINT, servers, spell)
    if found is not None:
        return found
    server, joint, tool = full.removeprefix(_PREFIX).partition(_JOINT)
    return served_by(server, tool) if joint and server and tool else None
