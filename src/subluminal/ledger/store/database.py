"""Opens `ledger.db`: one writer, any number of read-only readers, numbered migrations.

Always use APSW's own SQLite. The system's has the WAL-reset bug, and two SQLite libraries that open
one file in one process drop each other's locks.
"""

import os
from collections.abc import Callable
from importlib import resources
from typing import Any

import apsw

from subluminal.config.places import make_private_dir
from subluminal.errors import SubluminalError
from subluminal.ledger.ingest.hint_outcomes import judge
from subluminal.ledger.store.drops import early_statement

_WRITER_CACHE_KIB = 65_536
_READER_CACHE_KIB = 8_192
_BUSY_MS = 5_000
_START_AGAIN = (
    "restore it from a backup, or move the file away: ledgerd then reads the journals that are "
    "left, and `sub ledger verify` keeps reporting the loss"
)


class LedgerUnavailable(SubluminalError):
    """The ledger cannot be opened, or can no longer be written."""


class LedgerOutdated(LedgerUnavailable):
    """An earlier version wrote the ledger. ledgerd migrates it at its start."""


Sign = Callable[[bytes], bytes | None]
"""Signs a statement about a drop (`drops`), or returns None to leave it unsigned."""


def open_writer(path: str, sign_early_drop: Sign = lambda statement: None) -> apsw.Connection:
    """Opens the ledger for its one writer. Creates or migrates it first.

    `sign_early_drop` signs what an early version dropped, when its ledger is migrated.
    """
    make_private_dir(os.path.dirname(path))
    _refuse_other_kind(path)
    # SQLite gives the -wal and -shm files the mode of the database file.
    _create_private(path)
    try:
        connection = apsw.Connection(path)
        connection.set_busy_timeout(_BUSY_MS)
        connection.pragma("page_size", 8192)
        # Incremental: retention gives space back to the disk a little at a time.
        connection.pragma("auto_vacuum", 2)
        connection.pragma("journal_mode", "wal")
        # In WAL mode a kill loses nothing. A power cut may lose the last transactions, and with
        # them their journal offsets, so their events are read again.
        connection.pragma("synchronous", "NORMAL")
        connection.pragma("cache_size", -_WRITER_CACHE_KIB)
        connection.pragma("wal_autocheckpoint", 4_000)
        connection.pragma("journal_size_limit", 67_108_864)
        add_functions(connection, sign_early_drop)
        migrate(connection, path)
    except apsw.Error as error:
        raise unavailable(path, error) from error
    return connection


def open_reader(path: str) -> apsw.Connection:
    """Opens the ledger read-only. Raises LedgerUnavailable if there is no ledger yet."""
    if not os.path.exists(path):
        raise LedgerUnavailable(
            f"there is no ledger at `{path}`", hint="`sub ledgerd start` creates it"
        )
    _refuse_other_kind(path)
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(_BUSY_MS)
        connection.pragma("query_only", True)
        connection.pragma("cache_size", -_READER_CACHE_KIB)
        _refuse_other_schema(connection.pragma("user_version"), path)
    except apsw.Error as error:
        raise unavailable(path, error) from error
    return connection


def open_empty() -> apsw.Connection:
    """A ledger in memory without anything in it: what a home has whose ledger was removed."""
    connection = apsw.Connection(":memory:")
    add_functions(connection)
    migrate(connection, ":memory:")
    return connection


def unavailable(path: str, error: apsw.Error) -> LedgerUnavailable:
    """Turns an error of SQLite into ours, with a hint."""
    hints: dict[type[apsw.Error], str] = {
        apsw.FullError: "free some disk space, or lower `ledger.keep_days`",
        apsw.ReadOnlyError: "make the ledger's directory writable",
        apsw.CantOpenError: "make the ledger's directory writable",
        apsw.IOError: "check the disk for errors",
        apsw.BusyError: "another process has the ledger locked; only ledgerd may write it",
        apsw.CorruptError: _START_AGAIN,
        apsw.NotADBError: _START_AGAIN,
    }
    reason = str(error).removeprefix(type(error).__name__ + ": ")
    return LedgerUnavailable(f"ledger `{path}`: {reason}", hint=hints.get(type(error)))


def add_functions(connection: apsw.Connection, sign: Sign = lambda statement: None) -> None:
    """Adds the SQL functions that our statements and migrations call."""

    def sign_early_drop(*values: Any) -> bytes | None:
        return sign(early_statement(*values))

    connection.create_scalar_function("hint_outcome", _judge, 6, deterministic=True)
    connection.create_scalar_function("sign_early_drop", sign_early_drop, 6)


def migrations() -> list[tuple[int, str]]:
    """Every migration in order: its number and its SQL."""
    found = []
    for entry in resources.files("subluminal.ledger").joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            found.append((int(entry.name.partition("_")[0]), entry.read_text(encoding="utf-8")))
    return sorted(found)


def migrate(connection: apsw.Connection, path: str) -> None:
    """Migrates a ledger of any earlier version to this one. Each step is one transaction."""
    version = connection.pragma("user_version")
    _refuse_other_schema(version, path, may_be_older=True)
    for number, sql in migrations():
        if number > version:
            with connection:
                connection.execute(sql)
                connection.pragma("user_version", number)


def _refuse_other_schema(version: int, path: str, *, may_be_older: bool = False) -> None:
    known = migrations()[-1][0]
    if version > known:
        raise LedgerUnavailable(
            f"ledger `{path}` has schema {version}; this `sub` knows schemas up to {known}",
            hint="upgrade subluminal",
        )
    if version < known and not may_be_older:
        raise LedgerOutdated(
            f"ledger `{path}` has schema {version}; this `sub` needs schema {known}",
            hint="`sub ledgerd start` migrates the ledger",
        )


def _refuse_other_kind(path: str) -> None:
    """Refuses a pipe or a directory in place of the ledger: SQLite would never return."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise LedgerUnavailable(f"`{path}` is not a regular file", hint=_START_AGAIN)


def _judge(*values: Any) -> str:
    return judge(*values)


def copy_ledger(connection: apsw.Connection, path: str) -> None:
    """Writes a copy of an open ledger to a new file."""
    _create_private(path)
    connection.execute("VACUUM INTO ?", (path,))


def _create_private(path: str) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LedgerUnavailable(
            f"cannot write the ledger `{path}`: {reason}",
            hint="make the ledger's directory writable",
        ) from error
