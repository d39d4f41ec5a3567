"""Proves that the rows of approvals, refused grants and the kill switch follow from the events."""

import apsw
from msgspec import Struct, structs

from subluminal.contracts.events import Event
from subluminal.ledger.ingest.deriving_control import control_row
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.tables import CONTROL_TABLES, ControlTable, columns

Row = tuple[object, ...]


class ControlProof:
    """Collects the rows that follow from events, then compares them with the stored rows."""

    def __init__(self) -> None:
        self._told: dict[type[Struct], set[Row]] = {table.row: set() for table in CONTROL_TABLES}

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            try:
                row = control_row(event)
            except ValueError:
                # The event was quarantined at ingest, so it has no row.
                continue
            if row is not None:
                self._told[type(row)].add(structs.astuple(row))

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Reports rows that are missing, changed, or without an event.

        After retention dropped events, a row without an event is not reported.
        """
        for table in CONTROL_TABLES:
            told = _earliest(table, self._told[table.row])
            sql = f"SELECT {columns(table.row)} FROM {table.name}"
            stored = set(connection.execute(sql))
            for key, rows in told.items():
                if not rows & stored:
                    report.add(table.name, _where(key), "the row is missing, or was changed")
            if not report.dropped_events:
                for row in sorted(stored.difference(*told.values()), key=str):
                    report.add(table.name, _where(_key(table, row)), "there is no event for it")


def _earliest(table: ControlTable, rows: set[Row]) -> dict[Row, set[Row]]:
    """The earliest rows of each key. If several have the same time, any of them may be stored."""
    time = table.row.__struct_fields__.index(table.time)
    found: dict[Row, set[Row]] = {}
    for row in rows:
        kept = {*found.get(_key(table, row), ()), row}
        first = min(int(str(each[time])) for each in kept)
        found[_key(table, row)] = {each for each in kept if each[time] == first}
    return found


def _key(table: ControlTable, row: Row) -> Row:
    names = table.row.__struct_fields__
    return tuple(row[names.index(name)] for name in table.key) or row


def _where(key: Row) -> str:
    return f"`{' '.join(str(each) for each in key[:2])}`"
