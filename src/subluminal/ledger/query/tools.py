"""Lists the tools that servers offered or agents called."""

from typing import Any, NamedTuple

import apsw
import msgspec

from subluminal.clock import rfc3339
from subluminal.contracts.vocabulary import Action, Status
from subluminal.ledger.query.records import ToolRecord

_CALLED = (
    "SELECT server_name, tool_name, sum(calls), "
    f"sum(iif(decision NOT IN ('', '{Action.ALLOW}'), calls, 0)), "
    f"sum(iif(decision = '{Action.ALLOW}' AND status NOT IN ('', '{Status.OK}'), calls, 0)) "
    "FROM totals GROUP BY 1, 2"
)
_LISTED = (
    "SELECT server_name, tool_name, definition_hash, first_seen, last_seen FROM tool_definitions "
    "ORDER BY last_seen, first_seen"
)
_DEFINITIONS = (
    "SELECT server_name, tool_name, definition_json FROM tool_definitions "
    "ORDER BY last_seen, first_seen"
)

Tool = tuple[str, str]
"""server name, tool name"""


class _Definition(NamedTuple):
    hash: str
    first_seen: int
    last_seen: int


def list_tools(connection: apsw.Connection) -> list[ToolRecord]:
    """Every tool that was ever listed or called, sorted by name."""
    called: dict[Tool, tuple[int, int, int]] = {}
    for server_name, tool_name, *counts in connection.execute(_CALLED):
        called[server_name, tool_name] = (counts[0], counts[1], counts[2])
    listed: dict[Tool, list[_Definition]] = {}
    for server_name, tool_name, *definition in connection.execute(_LISTED):
        listed.setdefault((server_name, tool_name), []).append(_Definition(*definition))
    return [
        _record(tool, called.get(tool, (0, 0, 0)), listed.get(tool, []))
        for tool in sorted(called.keys() | listed.keys())
    ]


def tool_definitions(connection: apsw.Connection) -> dict[Tool, Any]:
    """The latest definition of every listed tool; None if no event had room for it."""
    found: dict[Tool, Any] = {}
    for server_name, tool_name, text in connection.execute(_DEFINITIONS):
        try:
            found[server_name, tool_name] = msgspec.json.decode(text or "null")
        except msgspec.DecodeError:
            found[server_name, tool_name] = None  # a mask broke the text
    return found


def tool_annotations(connection: apsw.Connection) -> dict[Tool, dict[str, Any]]:
    """The `annotations` of every tool's latest definition, as far as they are on record."""
    found: dict[Tool, dict[str, Any]] = {}
    for tool, said in tool_definitions(connection).items():
        annotations = said.get("annotations") if isinstance(said, dict) else None
        found[tool] = annotations if isinstance(annotations, dict) else {}
    return found


def _record(tool: Tool, counts: tuple[int, int, int], definitions: list[_Definition]) -> ToolRecord:
    if not definitions:
        return ToolRecord(*tool, *counts, None, 0, None, None)
    *earlier, current = definitions
    changed = None
    if earlier:
        # An old definition that came back was first seen long before it came back.
        changed = rfc3339(max(current.first_seen, *(each.last_seen for each in earlier)))
    seen = rfc3339(current.last_seen)
    return ToolRecord(*tool, *counts, current.hash, len(definitions), changed, seen)
