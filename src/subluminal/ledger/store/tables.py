"""How row structs map to tables: the SQL text that their fields give."""

from typing import NamedTuple

from msgspec import Struct

from subluminal.ledger.ingest.rows import AnswerRow, AskedRow, RefusalRow, SwitchRow


def columns(row: type[Struct]) -> str:
    """The columns of a row, separated by commas."""
    return ", ".join(row.__struct_fields__)


def marks(row: type[Struct]) -> str:
    """One `?` for each column of a row, separated by commas."""
    return ", ".join("?" * len(row.__struct_fields__))


class ControlTable(NamedTuple):
    """A table of people's acts. Each row also stores its event's shim and number."""

    name: str
    row: type[Struct]
    key: tuple[str, ...]
    """columns that identify a row; empty if every event has a row of its own"""
    time: str
    """the column that tells which of two rows with the same key is earlier"""

    def insert(self) -> str:
        """SQL that stores a row. Of two rows with the same key, the earlier one stays."""
        names = f"{columns(self.row)}, shim, n"
        sql = f"INSERT INTO {self.name} ({names}) VALUES ({marks(self.row)}, ?, ?)"
        if not self.key:
            return sql
        changes = ", ".join(f"{name} = excluded.{name}" for name in names.split(", "))
        return (
            f"{sql} ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changes} "
            f"WHERE excluded.{self.time} < {self.name}.{self.time}"
        )


CONTROL_TABLES = (
    ControlTable("approvals", AskedRow, ("approval_id",), "requested_at"),
    ControlTable("approval_answers", AnswerRow, (), "decided_at"),
    ControlTable("grant_refusals", RefusalRow, (), "refused_at"),
    ControlTable("switches", SwitchRow, ("switch_id", "state"), "moved_at"),
)
