"""Proves the database file: its tables and indexes are those of this version, and agree.

A query may read an index in place of its table. Whoever makes an index leave out a row hides the
row from queries, although every row is there. A trigger changes rows that ingest writes.
"""

import apsw

from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.database import open_empty

_MAX_PROBLEMS = 10
_SCHEMA = (
    "SELECT name, type, sql FROM main.sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)


def check_schema(connection: apsw.Connection, report: Report) -> None:
    """Reports tables, indexes, views and triggers that a ledger of this version does not have."""
    stored = _schema(connection)
    empty = open_empty()
    try:
        wanted = _schema(empty)
    finally:
        empty.close()
    for name in sorted(stored.keys() | wanted.keys()):
        if name not in stored:
            report.add("schema", f"`{name}`", f"the {wanted[name][0]} is missing")
        elif name not in wanted:
            report.add("schema", f"`{name}`", f"a ledger has no such {stored[name][0]}")
        elif stored[name] != wanted[name]:
            report.add("schema", f"`{name}`", f"the {wanted[name][0]} is defined differently")


def check_pages(connection: apsw.Connection, report: Report) -> None:
    """Reports damaged pages, and indexes that do not agree with their tables."""
    for (text,) in connection.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})"):
        if text != "ok":
            report.add("file", "`ledger.db`", str(text))


def _schema(connection: apsw.Connection) -> dict[str, tuple[str, str]]:
    return {str(name): (str(kind), str(sql)) for name, kind, sql in connection.execute(_SCHEMA)}
