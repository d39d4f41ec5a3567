"""Executions in one SQLite file of the home: for the processes of one machine.

Python's own `sqlite3` serves, so that the core needs no extra; nothing else opens this file. It
keeps a rollback journal: the system's SQLite may have the WAL-reset bug, which many writers would
meet. A commit is on the disk before the handler runs (`synchronous=FULL`).

SQLite follows an open file, not its name. If the file was deleted or replaced, a claim would be
kept where no other process looks, so the name is compared before and after every transaction.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from subluminal.adapters.in_process.executions.keeping import (
    KEEP_MS,
    PRUNE_ROWS,
    ExecutionsUnavailable,
    KeptRow,
    Shared,
    kept_row,
    not_mine,
)
from subluminal.adapters.in_process.executions.turnstile import Turnstile, pause
from subluminal.clock import now
from subluminal.config.private_files import link_new, write_aside
from subluminal.kernel.executions import ExecutionStatus, LedgerEntry

_BUSY_S = 5.0
"""Longest wait of a statement for other processes."""
_VERSION = 1
_SCHEMA = """
CREATE TABLE executions (
  intent_hash TEXT PRIMARY KEY NOT NULL,
  at TEXT NOT NULL,
  session_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  resource_version TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('claimed', 'done', 'unknown')),
  host TEXT NOT NULL,
  boot TEXT NOT NULL,
  pid INTEGER NOT NULL,
  start INTEGER NOT NULL,
  claimed_ms INTEGER NOT NULL,
  ended_ms INTEGER
) WITHOUT ROWID
"""
_INDEX = "CREATE INDEX ended ON executions (ended_ms) WHERE status = 'done'"
_COLUMNS = "intent_hash, at, session_id, kind, resource_version, status, host, boot, pid, start"
_SELECT = f"SELECT {_COLUMNS} FROM executions"
_CLAIM = (
    f"INSERT INTO executions ({_COLUMNS}, claimed_ms)"
    " VALUES (?, ?, ?, ?, ?, 'claimed', ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_MINE = "intent_hash = ? AND status = 'claimed' AND boot = ? AND pid = ? AND start = ?"
_FINISH = f"UPDATE executions SET status = ?, ended_ms = ? WHERE {_MINE}"
_RELEASE = f"DELETE FROM executions WHERE {_MINE}"
_PRUNE = (
    "DELETE FROM executions WHERE intent_hash IN (SELECT intent_hash FROM executions"
    " WHERE status = 'done' AND ended_ms < ? ORDER BY ended_ms LIMIT ?)"
)
_FORGETS = (
    "restore it from a backup, or move it away when nothing runs: its executions are then"
    " forgotten, and a retry of one runs it again"
)
_LOCKED = ("another process keeps it locked", "try again")
_PROBLEMS = (
    ("SQLITE_BUSY", *_LOCKED),
    ("SQLITE_FULL", "the disk is full", "free some disk space"),
    ("SQLITE_READONLY", "it cannot be written", "make the file and its directory writable"),
    ("SQLITE_CANTOPEN", "it cannot be opened", "make the file and its directory writable"),
    ("SQLITE_CORRUPT", "it is damaged", _FORGETS),
    ("SQLITE_NOTADB", "it is damaged", _FORGETS),
    ("SQLITE_IOERR", "the disk reports an error", "check the disk, and how much is free"),
)


class SqliteExecutions(Shared):
    """The execution ledger of a home."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: tuple[int, int] | None = None
        self._is_prepared = False
        self._turnstile = Turnstile(f"{path}-turn")
        self._connection: sqlite3.Connection | None = None
        self._inherited: list[sqlite3.Connection] = []
        super().__init__()
        with self._reading():
            pass  # a ledger that is out of reach is told at the start

    def check(self, intent_hash: str, /) -> LedgerEntry | None:
        with self._reading() as connection:
            kept = self._told(connection, self._row(connection, intent_hash))
        return kept and kept.entry

    def claim(self, entry: LedgerEntry, /) -> LedgerEntry | None:
        wall_ms = now().wall_ms
        values = (
            *(entry.intent_hash, entry.at, entry.session_id, entry.kind, entry.resource_version),
            *(*self.me, wall_ms),
        )
        with self._writing() as connection:
            if self.is_prune_due:
                removed = self._run(connection, _PRUNE, (wall_ms - KEEP_MS, PRUNE_ROWS)).rowcount
                self.note_pruned(removed)
            if self._run(connection, _CLAIM, values).rowcount:
                return None
            # Nobody can finish while this transaction writes, so one look is exact.
            held = self._row(connection, entry.intent_hash)
            return held and held.effective().entry

    def finish(self, intent_hash: str, status: ExecutionStatus, /) -> None:
        values = (status.value, now().wall_ms, intent_hash, *self.me[1:])
        with self._writing() as connection:
            if not self._run(connection, _FINISH, values).rowcount:
                raise not_mine(intent_hash)

    def release(self, intent_hash: str, /) -> None:
        with self._writing() as connection:
            self._run(connection, _RELEASE, (intent_hash, *self.me[1:]))

    def entries(self, status: ExecutionStatus | None, limit: int, /) -> list[LedgerEntry]:
        done, newest = ExecutionStatus.DONE, "ORDER BY claimed_ms DESC, intent_hash"
        with self._reading() as connection:
            if status is None:
                found = self._run(connection, f"{_SELECT} {newest} LIMIT ?", (limit,))
            elif status is done:
                found = self._run(
                    connection, f"{_SELECT} WHERE status = ? {newest} LIMIT ?", (done, limit)
                )
            else:  # few: running now, or not yet released by a person
                found = self._run(connection, f"{_SELECT} WHERE status != ? {newest}", (done,))
            rows = [self._told(connection, kept_row(values)) for values in found.fetchall()]
        entries = [row.entry for row in rows if row and status in (None, row.entry.status)]
        return entries[:limit]

    def find(self, prefix: str, limit: int, /) -> list[KeptRow]:
        with self._reading() as connection:
            found = self._run(
                connection,
                f"{_SELECT} WHERE substr(intent_hash, 1, ?) = ? LIMIT ?",
                (len(prefix), prefix, limit),
            ).fetchall()
            rows = [self._told(connection, kept_row(values)) for values in found]
        return [row for row in rows if row]

    def free(self, intent_hash: str, /) -> KeptRow | None:
        with self._writing() as connection:
            held = self._row(connection, intent_hash)
            if held is None:
                return None
            kept = held.effective()
            if kept.entry.status is ExecutionStatus.UNKNOWN:
                self._run(
                    connection, "DELETE FROM executions WHERE intent_hash = ?", (intent_hash,)
                )
        return kept

    def close(self) -> None:
        with self.turn():
            self._disconnect()
            self._turnstile.close()

    def drop_inherited(self) -> None:
        super().drop_inherited()
        self._turnstile.close()
        if self._connection is not None:
            # SQLite forbids the child to use it, and to close it.
            self._inherited.append(self._connection)
            self._connection = None

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self.turn():
            try:
                yield self._connected()
            except (sqlite3.Error, ValueError, OverflowError, OSError) as error:
                self._disconnect()
                self._check_file()  # why SQLite failed, perhaps
                raise self._unavailable(error) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Runs one transaction: committed on the disk, in the file that has the ledger's name."""
        with self._reading() as connection:
            self._begin(connection)
            try:
                yield connection
                self._run(connection, "COMMIT")
            except BaseException:
                if connection.in_transaction:
                    self._run(connection, "ROLLBACK")
                raise
            self._check_file()

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Begins to write, in turn with other processes."""
        if not self._turnstile.enter(time.monotonic() + _BUSY_S):
            raise self._out_of_reach(*_LOCKED)
        try:
            self._run(connection, "BEGIN IMMEDIATE")
        finally:
            self._turnstile.leave()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        elif self._connection.in_transaction:  # an interrupt ended the last turn
            self._run(self._connection, "ROLLBACK")
        self._check_file()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        if self._file is None:
            self._create()
            self._file = self._found()
        self._check_file()
        connection = sqlite3.connect(
            f"file:{quote(os.fsencode(self._path))}?mode=rw",
            uri=True,
            timeout=0.0,  # `_run` waits
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # The journal file stays: creating and removing it costs more than the claim.
            self._run(connection, "PRAGMA journal_mode = PERSIST")
            self._run(connection, "PRAGMA synchronous = FULL")
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Creates the table in a new file. Refuses a file of a later version."""
        version = self._run(connection, "PRAGMA user_version").fetchone()[0]
        if version == _VERSION:
            self._is_prepared = True
            return
        self._begin(connection)
        version = self._run(connection, "PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise ExecutionsUnavailable(
                f"the execution ledger `{self._path}` has schema {version}; this version knows"
                f" schema {_VERSION}",
                hint="upgrade subluminal",
            )
        if self._is_prepared:
            raise sqlite3.DatabaseError("it was emptied")
        if version < _VERSION:
            self._run(connection, _SCHEMA)
            self._run(connection, _INDEX)
            self._run(connection, f"PRAGMA user_version = {_VERSION}")
        self._run(connection, "COMMIT")
        self._is_prepared = True

    def _create(self) -> None:
        """Creates an empty file, unless there is one.

        The file gets its name after it was closed here: closing a file drops the locks that
        another connection of this process has on it.
        """
        if os.path.lexists(self._path):
            return
        link_new(write_aside(self._path, b"", durable=True), self._path)
        directory = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _found(self) -> tuple[int, int]:
        found = os.stat(self._path)
        if not stat.S_ISREG(found.st_mode):  # opening a pipe would block
            raise ExecutionsUnavailable(
                f"`{self._path}` is not a regular file", hint="move it away"
            )
        return found.st_dev, found.st_ino

    def _check_file(self) -> None:
        """Raises if the ledger's name is no longer that of the file which was opened."""
        if self._file is None:
            return
        try:
            is_there = self._found() == self._file
        except FileNotFoundError:
            is_there = False
        if not is_there:
            raise ExecutionsUnavailable(
                f"the execution ledger `{self._path}` was deleted or replaced while in use",
                hint="restore it from a backup, or start the agent again: executions of the past"
                " are then forgotten",
            )

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _unavailable(self, error: Exception) -> ExecutionsUnavailable:
        name = getattr(error, "sqlite_errorname", "")
        for code, problem, hint in _PROBLEMS:
            if name.startswith(code):
                return self._out_of_reach(problem, hint)
        reason = error.strerror if isinstance(error, OSError) else None
        return self._out_of_reach((reason or str(error)).lower())

    def _out_of_reach(self, problem: str, hint: str | None = None) -> ExecutionsUnavailable:
        return ExecutionsUnavailable(
            f"the execution ledger `{self._path}` is out of reach: {problem}", hint=hint
        )

    def _run(
        self, connection: sqlite3.Connection, statement: str, values: tuple[Any, ...] = ()
    ) -> sqlite3.Cursor:
        """Runs one statement, and waits for other processes within the bound."""
        deadline = time.monotonic() + _BUSY_S
        try:
            while True:
                try:
                    return connection.execute(statement, values)
                except sqlite3.OperationalError as error:
                    is_busy = error.sqlite_errorname.startswith("SQLITE_BUSY")
                    if not is_busy or time.monotonic() >= deadline:
                        raise
                if not connection.in_transaction:  # a commit only waits for those who read now
                    self._turnstile.enter(deadline)
                pause()
        finally:
            self._turnstile.leave()

    def _row(self, connection: sqlite3.Connection, intent_hash: str) -> KeptRow | None:
        found = self._run(connection, f"{_SELECT} WHERE intent_hash = ?", (intent_hash,))
        values = found.fetchone()
        return None if values is None else kept_row(values)

    def _told(self, connection: sqlite3.Connection, row: KeptRow | None) -> KeptRow | None:
        """Returns a row with its effective status.

        A claimant that is gone may have finished after the row was read, so it is read again.
        """
        if row is None:
            return None
        told = row.effective()
        if told is row:
            return row
        again = self._row(connection, row.entry.intent_hash)
        return None if again is None else again.effective()
