"""Finds secrets in what was recorded, by today's values and patterns, and removes them.

Journals and the ledger are scanned. A preview can be dropped. An event is part of a hash chain: it
is reported, and overwritten only if the caller accepts that the chain breaks.
"""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from subluminal.contracts.vocabulary import SecretSource
from subluminal.core.records.redaction.matching import TooManyHits
from subluminal.core.records.redaction.redactor import TOO_MANY, Redactor, redactor_for
from subluminal.core.records.redaction.scanning import rewrite as rewrite_journal
from subluminal.core.records.redaction.scanning import scan_journals
from subluminal.errors import SecretUnavailable, SubluminalError
from subluminal.operator.secrets import HomeSecrets
from subluminal.secrets.resolving import read_secret
from subluminal.secrets.value import SecretValue

if TYPE_CHECKING:
    from subluminal.ledger.store.segments import StoredSegment

_PREVIEWS = "SELECT id, call_id, args_preview, result_preview FROM previews ORDER BY id"


class FoundSecret(NamedTuple):
    """One place in the record that holds a secret."""

    file: str
    """path below the home"""
    place: str
    """byte offset, call_id, or the shim's row and the event's number"""
    where: str
    """`preview` or `event`"""
    names: tuple[str, ...]
    """names of the secrets and patterns that matched"""
    removed: bool


class KnownValues(NamedTuple):
    """The values to search for, and why others cannot be searched for."""

    values: list[SecretValue]
    problems: list[SubluminalError]


def known_values(home: HomeSecrets) -> KnownValues:
    """Reads every value that is readable now: of bindings, and of the file store."""
    wanted = {(binding.source, binding.secret_ref) for _, binding in home.bindings()}
    wanted |= {(SecretSource.FILE, name) for name in home.store.contents().secrets}
    found = KnownValues([], [])
    for source, name in sorted(wanted):
        try:
            value = read_secret(source, name, home.sources)
        except SecretUnavailable as error:
            problem = SubluminalError(f"cannot search for `{name}`: {error}", hint=error.hint)
            found.problems.append(problem)
            continue
        if value:
            found.values.append(SecretValue(name, value))
        else:
            reason = f"`{source.value}` has no value for it"
            found.problems.append(SubluminalError(f"cannot search for `{name}`: {reason}"))
    return found


def scan(
    home: HomeSecrets, values: list[SecretValue], *, rewrite: bool, may_break_chain: bool
) -> Iterator[FoundSecret]:
    """Yields every secret in journals and ledger; with `rewrite` removes what may be removed."""
    redactor = redactor_for(home.settings.redact, values)
    for finding in scan_journals(home.places.journal, redactor):
        removed = rewrite and rewrite_journal(finding, redactor, may_break_chain=may_break_chain)
        path = os.path.relpath(finding.path, home.places.home)
        place = f"byte {finding.offset}"
        yield FoundSecret(path, place, finding.where, finding.names, removed)
    if os.path.exists(home.places.ledger) and find_spec("apsw") is not None:
        yield from _scan_ledger(home.places.ledger, redactor, rewrite=rewrite)


def _scan_ledger(path: str, redactor: Redactor, *, rewrite: bool) -> Iterator[FoundSecret]:
    from subluminal.ledger.store.database import open_reader
    from subluminal.ledger.store.segments import after

    name = os.path.basename(path)
    connection = open_reader(path)
    try:
        previews: dict[int, FoundSecret] = {}
        for row, call_id, *texts in connection.execute(_PREVIEWS):
            names = {name for text in texts if text for name in _names(redactor, text.encode())}
            if names:
                found = FoundSecret(name, str(call_id), "preview", tuple(sorted(names)), rewrite)
                previews[int(str(row))] = found
        events = [
            found for segment in after(connection, 0) for found in _events(name, segment, redactor)
        ]
    finally:
        connection.close()
    if rewrite and previews:
        _drop_previews(path, list(previews))
    yield from previews.values()
    yield from events


def _events(file: str, segment: "StoredSegment", redactor: Redactor) -> Iterator[FoundSecret]:
    for number, line in enumerate(segment.lines(), segment.first_n):
        if names := _names(redactor, line):
            place = f"shim {segment.shim} event {number}"
            yield FoundSecret(file, place, "event", names, removed=False)


def _drop_previews(path: str, rows: list[int]) -> None:
    """Removes previews from the ledger, from its text search, and from the disk.

    SQLite keeps deleted bytes until it needs the space. So they are overwritten, and the
    write-ahead log is emptied.
    """
    import apsw

    from subluminal.ledger.store.database import open_writer

    ids = [(row,) for row in rows]
    connection = open_writer(path)
    try:
        connection.pragma("secure_delete", True)
        with connection:
            connection.executemany(
                "UPDATE previews SET args_preview = NULL, result_preview = NULL WHERE id = ?", ids
            )
            connection.executemany("DELETE FROM search WHERE rowid = ?", ids)
            connection.execute("INSERT INTO search (search) VALUES ('optimize')")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def _names(redactor: Redactor, data: bytes) -> tuple[str, ...]:
    try:
        return redactor.names_of(redactor.find(data))
    except TooManyHits:
        return (TOO_MANY,)
