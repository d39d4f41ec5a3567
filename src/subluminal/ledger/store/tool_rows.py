"""Writes `tool_definitions`. Rows merge in any order: the earliest sight is the first one."""

from collections.abc import Iterator

import apsw
from msgspec import UNSET

from subluminal.contracts.events import ToolsListed
from subluminal.ledger.ingest.batch import Batch

_SEEN = (
    "INSERT INTO tool_definitions VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6) ON CONFLICT DO UPDATE SET "
    "definition_json = ifnull(definition_json, excluded.definition_json), "
    "run_id = iif(excluded.first_seen < first_seen, excluded.run_id, run_id), "
    "first_seen = min(first_seen, excluded.first_seen), "
    "last_seen = max(last_seen, excluded.last_seen)"
)

Sight = tuple[str, str, str, str | None, int, str]
"""server, tool, hash, definition, when, in which run"""


def write(connection: apsw.Connection, batch: Batch) -> None:
    """Writes what a batch says about tools."""
    for event, at_ms in batch.listings:
        connection.executemany(_SEEN, sights(event, at_ms))


def sights(event: ToolsListed, at_ms: int) -> Iterator[Sight]:
    """What one event tells of every tool in it."""
    listing = event.listing
    for tool in listing.tools:
        text = None if tool.definition is UNSET else tool.definition
        yield (listing.server_name, tool.name, tool.hash, text, at_ms, event.run_id)
