"""Claims of executions, on both engines, against a bare insert of the same row.

The bare insert is as durable as the claim: it is on the disk when it returns. Both files are on one
disk, both tables on one server.
"""

import itertools
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from tests.adapters.in_process.executions.claimants import entry
from tests.adapters.in_process.executions.postgres_server import PostgresServer

from bench.harness import Result, interleaved
from bench.stdio_peers import WORK
from subluminal.adapters.in_process.executions import KeptExecutions, open_executions
from subluminal.config.places import Places

_SQLITE_BAR, _POSTGRES_BAR = 2.0, 1.6
_ROUNDS, _CLAIMS = 40, 5
_COLUMNS = "hash TEXT PRIMARY KEY, at TEXT, session TEXT, kind TEXT, version TEXT, status TEXT"


def measure() -> Iterator[Result]:
    """Yields the time of a claim over that of a bare insert, for SQLite and PostgreSQL."""
    WORK.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(dir=WORK)
    try:
        with closing(_opened("sqlite", folder)) as ledger, _bare_sqlite(folder) as bare:
            yield _compared("SQLite", ledger, bare, _SQLITE_BAR)
        server = PostgresServer(durable=True)
        try:
            server.start()
            with closing(_opened(server.url, folder)) as ledger, _bare_postgres(server) as bare:
                yield _compared("PostgreSQL", ledger, bare, _POSTGRES_BAR)
        finally:
            server.remove()
    finally:
        shutil.rmtree(folder)


def _opened(setting: str, folder: str) -> KeptExecutions:
    ledger = open_executions(setting, Places(folder, folder))
    assert ledger is not None
    return ledger


def _compared(
    engine: str, ledger: KeptExecutions, insert: Callable[[tuple[str, ...]], object], bar: float
) -> Result:
    numbers = itertools.count()

    def claim() -> None:
        assert ledger.claim(entry(f"claim {next(numbers)}")) is None

    def bare() -> None:
        row = entry(f"bare {next(numbers)}")
        insert((row.intent_hash, row.at, row.session_id, row.kind, row.resource_version, "claimed"))

    ours, theirs = interleaved([claim, bare], rounds=_ROUNDS, number=_CLAIMS)
    detail = f"{1 / ours:.0f} claims/s against {1 / theirs:.0f} inserts/s"
    return Result(f"claim of an execution, {engine}", ours / theirs, bar, False, detail)


@contextmanager
def _bare_sqlite(folder: str) -> Iterator[Callable[[tuple[str, ...]], object]]:
    with closing(sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = PERSIST")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"CREATE TABLE bare ({_COLUMNS}) WITHOUT ROWID")
        yield lambda row: connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?, ?)", row)


@contextmanager
def _bare_postgres(server: PostgresServer) -> Iterator[Callable[[tuple[str, ...]], object]]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE bare ({_COLUMNS})".encode())
        insert = "INSERT INTO bare VALUES (%s, %s, %s, %s, %s, %s)"
        yield lambda row: connection.execute(insert, row)
