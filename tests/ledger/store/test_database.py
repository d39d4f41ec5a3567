"""Opening a ledger: private, migrated forward only, and clear about what is wrong."""

import os
import stat
import subprocess
from pathlib import Path

import apsw
import pytest
from tests.ledger.home import Home
from tests.requirements import requirement

from subluminal.ledger.store import database
from subluminal.ledger.store.database import LedgerUnavailable, open_reader, open_writer


@requirement("001-11.2:wal")
def test_it_is_private_and_its_settings_are_ours(home: Home) -> None:
    home.producer().call()
    home.ingest()
    for suffix in ("", "-wal", "-shm"):
        assert stat.S_IMODE(os.stat(home.places.ledger + suffix).st_mode) == 0o600
    connection = home.store.connection
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("integrity_check") == "ok"
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)
    with pytest.raises(apsw.ReadOnlyError):
        home.reader().execute("DELETE FROM runs")


@requirement("001-11.3:schema")
def test_the_tables_and_indexes_of_the_spec_are_there(home: Home) -> None:
    """Spec 001 section 11.3."""
    columns = {
        table: {row[1] for row in home.rows(f"PRAGMA table_info({table})")}
        for table in ("runs", "tool_calls", "previews", "hints", "policy_versions")
    }
    assert columns["runs"] >= {
        "run_id",
        "agent_id",
        "client",
        "env",
        "started_at",
        "ended_at",
        "status",
        "metadata_json",
    }
    assert columns["tool_calls"] >= {
        "call_id",
        "run_id",
        "server_name",
        "tool_name",
        "args_hash",
        "decision",
        "rule_id",
        "status",
        "latency_ms",
        "bytes_in",
        "bytes_out",
        "preview_truncated",
        "created_at",
    }
    assert columns["previews"] >= {"call_id", "args_preview", "result_preview", "redaction_flags"}
    assert columns["hints"] >= {"call_id", "hint_text", "suggested_args_json", "created_at"}
    assert columns["policy_versions"] >= {
        "policy_id",
        "version",
        "mode",
        "rules_hash",
        "rules_json",
        "created_at",
    }
    indexes = {row[1] for row in home.rows("PRAGMA index_list(tool_calls)")}
    assert indexes >= {"calls_by_run", "calls_by_tool", "calls_by_outcome", "calls_by_args"}


def test_a_ledger_of_the_future_is_refused(home: Home) -> None:
    home.store.connection.pragma("user_version", 999)
    home.restart()
    for opening in (open_writer, open_reader):
        with pytest.raises(LedgerUnavailable, match="schema 999; this `sub` knows") as told:
            opening(home.places.ledger)
        assert told.value.hint == "upgrade subluminal"


def test_an_older_ledger_is_migrated_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.producer().call()
    home.ingest()
    home.restart()
    known = database.migrations()
    newer = [*known, (len(known) + 1, "ALTER TABLE runs ADD COLUMN extra TEXT")]
    monkeypatch.setattr(database, "migrations", lambda: newer)
    with pytest.raises(LedgerUnavailable, match="older") as told:
        open_reader(home.places.ledger)
    assert "migrates" in str(told.value.hint)
    assert "extra" in {row[1] for row in home.rows("PRAGMA table_info(runs)")}
    home.restart()
    assert home.rows("SELECT count(*) FROM tool_calls") == [(1,)]


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.rows("SELECT 1") == [(1,)]
    home.restart()
    known = database.migrations()
    broken = [*known, (len(known) + 1, "CREATE TABLE half (x); SELECT nonsense")]
    monkeypatch.setattr(database, "migrations", lambda: broken)
    with pytest.raises(LedgerUnavailable):
        open_writer(home.places.ledger)
    monkeypatch.undo()
    assert home.rows("SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]


def test_every_migration_runs_from_the_one_before(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    database.add_functions(connection)
    for number, sql in database.migrations():
        connection.execute(sql)
        connection.pragma("user_version", number)
    database.migrate(connection, "x")
    connection.close()


def test_a_file_that_is_not_a_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is not a database, and it is long enough to look like one" * 99)
    with pytest.raises(LedgerUnavailable, match="not a database") as told:
        open_writer(str(path))
    assert "move the file away" in str(told.value.hint)
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        open_reader(str(tmp_path / "absent.db"))


def test_a_read_only_home_gets_an_error(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(place)], check=True)
    try:
        with pytest.raises(LedgerUnavailable, match="read-only file system"):
            open_writer(str(place / "ledger.db"))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_an_older_ledger_gets_the_index_on_args_hash(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.db")
    connection = apsw.Connection(path)
    database.add_functions(connection)
    for number, sql in database.migrations():
        if number < 6:
            connection.execute(sql)
    connection.pragma("user_version", 5)
    connection.execute("INSERT INTO quarantine VALUES (1, 'o', 2, 'r', x'00', 3)")
    connection.close()
    migrated = open_writer(path)
    (found,) = migrated.execute("SELECT sql FROM sqlite_master WHERE name = 'calls_by_args'")
    assert found == ("CREATE INDEX calls_by_args ON tool_calls (args_hash, created_at)",)
    assert migrated.execute("SELECT length, lines FROM quarantine").fetchall() == [(None, 1)]
    assert migrated.execute("SELECT * FROM counters").fetchall() == [("quarantined", 1)]
    migrated.close()
