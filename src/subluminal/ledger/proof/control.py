"""Proves that what people were asked, answered and stopped follows from the events."""

import apsw
from msgspec import Struct, structs

from subluminal.contracts.events import Event
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.control_rows import TABLES, Table, row_of
from subluminal.ledger.store.rows import columns

Row = tuple[object, ...]


class ControlProof:
    """Collects what events say of people's acts."""

    def __init__(self) -> None:
        self._told: dict[type[Struct], set[Row]] = {table.row: set() for table in TABLES}

    def feed(self, events: list[Event]) -> None:
        """Takes events in any order."""
        for event in events:
            try:
                row = row_of(event)
            except (ValueError, OverflowError):
                # It was quarantined, so it has no row.
                continue
            if row is not None:
                self._told[type(row)].add(structs.astuple(row))

    def compare(self, connection: apsw.Connection, report: Report) -> None:
        """Finds rows that are stored otherwise.

        Where retention took events, rows may know of what no event tells any more.
        """
        for table in TABLES:
            told = _earliest(table, self._told[table.row])
            sql = f"SELECT {columns(table.row)} FROM {table.name}"
            stored = set(connection.execute(sql))
            for key, rows in told.items():
                if not rows & stored:
                    report.add(table.name, _where(key), "the row is missing, or was changed")
            if not report.dropped_events:
                for row in sorted(stored.difference(*told.values()), key=str):
                    report.add(table.name, _where(_key(table, row)), "no event tells of it")


def _earliest(table: Table, rows: set[Row]) -> dict[Row, set[Row]]:
    """The rows that may stand for each key: of equal times, either may have been stored."""
    time = table.row.__struct_fields__.index(table.time)
    found: dict[Row, set[Row]] = {}
    for row in rows:
        kept = {*found.get(_key(table, row), ()), row}
        first = min(int(str(each[time])) for each in kept)
        found[_key(table, row)] = {each for each in kept if each[time] == first}
    return found


def _key(table: Table, row: Row) -> Row:
    names = table.row.__struct_fields__
    return tuple(row[names.index(name)] for name in table.key) or row


def _where(key: Row) -> str:
    return f"`{' '.join(str(each) for each in key[:2])}`"
