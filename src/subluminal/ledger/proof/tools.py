"""Proves that stored tool definitions follow from the events, whatever order those came in."""

import apsw
from msgspec import Struct, field

from subluminal.contracts.events import Event, ToolsListed
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store import tool_rows
from subluminal.ledger.store.timestamps import to_ms

Key = tuple[str, str, str]

_STORED = (
    "SELECT server_name, tool_name, definition_hash, definition_json, first_seen, last_seen, "
    "run_id FROM tool_definitions"
)


class _Told(Struct):
    """What the events say of one definition. Of equal sights, either may have been stored."""

    first: int
    last: int
    texts: set[str | None] = field(default_factory=set)
    runs: set[str] = field(default_factory=set)

    def see(self, text: str | None, at_ms: int, run_id: str) -> None:
        """Takes one more sight."""
        if at_ms < self.first:
            self.first = at_ms
            self.runs.clear()
        if at_ms == self.first:
            self.runs.add(run_id)
        self.last = max(self.last, at_ms)
        if text is not None:
            self.texts.add(text)


class ToolProof:
    """Collects what events say of tools."""

    def __init__(self) -> None:
        self._told: dict[Key, _Told] = {}

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            if isinstance(event, ToolsListed):
                for *key, text, at_ms, run_id in tool_rows.sights(event, to_ms(event.ts)):
                    told = self._told.setdefault(_key(*key), _Told(at_ms, at_ms))
                    told.see(text, at_ms, run_id)

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Finds definitions that are stored otherwise.

        Where retention took events, rows may know of sights that no event tells of any more.
        """
        stored = {_key(*row[:3]): row[3:] for row in connection.execute(_STORED)}
        for key in sorted(self._told.keys() - stored.keys()):
            report.add("tool_definitions", _where(key), "the row is missing")
        if report.dropped_events:
            return
        for key in sorted(stored.keys()):
            told = self._told.get(key)
            problem = "no event tells of it" if told is None else _problem(told, *stored[key])
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
