"""The ledger's part of `sub secrets scan`: previews can be dropped, chained events only told.

Loaded only if there is a ledger. SQLite keeps what was deleted until it needs the room, so a
removal overwrites it and empties the write-ahead log.
"""

from collections.abc import Iterator
from typing import NamedTuple

import apsw

from subluminal.core.records.redaction.matching import TooManyHits
from subluminal.core.records.redaction.redactor import TOO_MANY, Redactor
from subluminal.ledger.store.database import open_reader, open_writer
from subluminal.ledger.store.segments import after

_PREVIEWS = "SELECT id, call_id, args_preview, result_preview FROM previews ORDER BY id"


class LedgerFinding(NamedTuple):
    """A preview, or an event, with something to mask in it."""

    where: str
    """`preview` or `event`"""
    place: str
    """a call_id, or the shim's row and the event's number"""
    names: tuple[str, ...]
    row: int
    """of `previews`; 0 for an event"""


def scan_ledger(path: str, redactor: Redactor) -> Iterator[LedgerFinding]:
    """Yields what is found in previews, and in the events that the ledger keeps."""
    connection = open_reader(path)
    try:
        for row, call_id, *texts in connection.execute(_PREVIEWS):
            names = {name for text in texts if text for name in _names(redactor, text.encode())}
            if names:
                yield LedgerFinding("preview", str(call_id), tuple(sorted(names)), int(str(row)))
        for segment in after(connection, 0):
            for number, line in enumerate(segment.lines(), segment.first_n):
                if found := _names(redactor, line):
                    yield LedgerFinding("event", f"shim {segment.shim} event {number}", found, 0)
    finally:
        connection.close()


def drop_previews(path: str, findings: list[LedgerFinding]) -> None:
    """Removes previews from the ledger, from its text search, and from the disk."""
    rows = [(finding.row,) for finding in findings]
    connection = open_writer(path)
    try:
        connection.pragma("secure_delete", True)
        with connection:
            connection.executemany(
                "UPDATE previews SET args_preview = NULL, result_preview = NULL WHERE id = ?", rows
            )
            connection.executemany("DELETE FROM search WHERE rowid = ?", rows)
            connection.execute("INSERT INTO search (search) VALUES ('optimize')")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def _names(redactor: Redactor, data: bytes) -> tuple[str, ...]:
    try:
        return redactor.names_of(redactor.find(data))
    except TooManyHits:
        return (TOO_MANY,)
