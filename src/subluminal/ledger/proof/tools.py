"""Proves that stored tool definitions follow from the events, in whatever order they arrived."""

import apsw
from msgspec import Struct, field

from subluminal.contracts.events import Event, ToolsListed
from subluminal.ledger.ingest.deriving_runs import tool_sights
from subluminal.ledger.proof.findings import Report
from subluminal.timestamps import parse_rfc3339

Key = tuple[str, str, str]
"""server name, tool name, definition hash"""

_STORED = (
    "SELECT server_name, tool_name, definition_hash, definition_json, first_seen, last_seen, "
    "run_id FROM tool_definitions"
)


class _Told(Struct):
    """What the events say of one definition. Of sights at the same time, any may be stored."""

    first: int
    last: int
    texts: set[str | None] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)

    def see(self, text: str | None, at_ms: int, run_id: str) -> None:
        """Adds one sight of the definition."""
        if at_ms < self.first:
            self.first = at_ms
            self.runs.clear()
        if at_ms == self.first:
            self.runs.add(run_id)
        self.last = max(self.last, at_ms)
        if text is not None:
            self.texts.add(text)


class ToolProof:
    """Collects what events say of tools, then compares it with the stored rows."""

    def __init__(self) -> None:
        self._told: dict[Key, _Told] = {}

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            if isinstance(event, ToolsListed):
                for *key, text, at_ms, run_id in tool_sights(event, parse_rfc3339(event.ts)):
                    told = self._told.setdefault(_key(*key), _Told(at_ms, at_ms))
                    told.see(text, at_ms, run_id)

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Reports definitions that are missing, changed, or without an event.

        After retention dropped events, only missing ones: a row may say more than the events left.
        """
        stored = {_key(*row[:3]): row[3:] for row in connection.execute(_STORED)}
        for key in sorted(self._told.keys() - stored.keys()):
            report.add("tool_definitions", _where(key), "the row is missing")
        if report.dropped_events:
            return
        for key in sorted(stored.keys()):
            told = self._told.get(key)
            problem = "there is no event for it" if told is None else _problem(told, *stored[key])
            if problem:
                report.add("tool_definitions", _where(key), problem)


def _problem(told: _Told, text: str | None, first: int, last: int, run_id: str) -> str | None:
    facts = (
        ("definition_json", text in (told.texts or {None})),
        ("first_seen", first == told.first),
        ("last_seen", last == told.last),
        ("run_id", run_id in told.runs),
    )
    wrong = next((name for name, holds in facts if not holds), None)
    return None if wrong is None else f"`{wrong}` is not what the events say"


def _key(server_name: object, tool_name: object, digest: object) -> Key:
    return (str(server_name), str(tool_name), str(digest))


def _where(key: Key) -> str:
    return f"tool `{key[0]}/{key[1]}`"
