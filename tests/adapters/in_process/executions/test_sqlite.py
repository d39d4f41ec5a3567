"""The file of executions: where it is, and what happens when it cannot be used."""

import fcntl
import os
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.adapters.in_process.executions.claimants import entry, hash_of
from tests.processes import wait_until
from tests.requirements import requirement

from subluminal.adapters.in_process.executions import (
    ExecutionsUnavailable,
    Holder,
    KeptExecutions,
    sqlite,
)
from subluminal.adapters.in_process.executions.sqlite import SqliteExecutions
from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.kernel.executions import ExecutionStatus

DAY_MS = 86_400_000


@pytest.fixture
def ledger(home: Places, opened: Callable[[str], KeptExecutions]) -> KeptExecutions:
    return opened("sqlite")


@pytest.fixture
def other(home: Places, ledger: KeptExecutions) -> Iterator[sqlite3.Connection]:
    """Another connection to the same file."""
    with closing(sqlite3.connect(home.executions, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def small_home(tmp_path: Path) -> Iterator[Places]:
    """A home on a file system of its own: tmpfs, which says ENOSPC as a real disk does."""
    options = "size=512k,mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(tmp_path)], check=True)
    yield Places(str(tmp_path), str(tmp_path))
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def status(ledger: KeptExecutions, name: str) -> str | None:
    found = ledger.check(hash_of(name))
    return found and found.status.value


def test_only_the_owner_can_read_the_file(ledger: KeptExecutions, home: Places) -> None:
    ledger.claim(entry("one"))
    assert stat.S_IMODE(os.stat(home.state).st_mode) == 0o700
    found = {each.name: stat.S_IMODE(each.stat().st_mode) for each in os.scandir(home.state)}
    assert found == dict.fromkeys(
        ("executions.db", "executions.db-journal", "executions.db-turn"), 0o600
    )


@requirement("kernel:durable-claim")
def test_a_claim_is_on_the_disk_when_it_returns(ledger: SqliteExecutions) -> None:
    """2 is FULL, and a rollback journal that stays is synchronised when it is reset."""
    with ledger._reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("persist",)


@requirement("kernel:unknown-after-death")
@pytest.mark.parametrize("change", ["boot = 'another'", "start = start + 1", "pid = 4194305"])
def test_a_claim_of_a_process_that_is_gone_is_unknown(
    ledger: KeptExecutions, other: sqlite3.Connection, change: str
) -> None:
    ledger.claim(entry("one"))
    assert status(ledger, "one") == "claimed"
    other.execute(f"UPDATE executions SET {change}")
    assert status(ledger, "one") == "unknown"


def test_a_holder_cannot_finish_while_a_claim_looks_for_its_process(
    ledger: KeptExecutions, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a holder that finishes and ends at that moment would be told as `unknown`."""
    other.execute("PRAGMA busy_timeout = 0")
    ledger.claim(entry("one"))
    refused: list[str] = []

    def lives(holder: Holder) -> bool:
        with pytest.raises(sqlite3.OperationalError) as error:
            other.execute("BEGIN IMMEDIATE")
        refused.append(str(error.value))
        return True

    monkeypatch.setattr(Holder, "lives", property(lives))
    assert ledger.claim(entry("one")) == entry("one")
    assert refused == ["database is locked"]


@requirement("kernel:retention")
def test_only_what_is_done_is_removed_after_14_days(
    ledger: KeptExecutions, other: sqlite3.Connection, opened: Callable[[str], KeptExecutions]
) -> None:
    for name in ("old", "young", "unknown", "claimed"):
        ledger.claim(entry(name))
    for name, end in (("old", "done"), ("young", "done"), ("unknown", "unknown")):
        ledger.finish(hash_of(name), ExecutionStatus(end))
    wall_ms = now().wall_ms
    for name, days in (("old", 15), ("young", 13), ("unknown", 400), ("claimed", 400)):
        times = (wall_ms - days * DAY_MS, wall_ms - days * DAY_MS, hash_of(name))
        other.execute(
            "UPDATE executions SET claimed_ms = ?, ended_ms = ? WHERE intent_hash = ?", times
        )
    fresh = opened("sqlite")
    assert fresh.claim(entry("next")) is None
    assert status(fresh, "old") is None
    kept = {name: status(fresh, name) for name in ("young", "unknown", "claimed")}
    assert kept == {"young": "done", "unknown": "unknown", "claimed": "claimed"}


def test_a_claim_removes_a_bounded_number(
    ledger: KeptExecutions, other: sqlite3.Connection, opened: Callable[[str], KeptExecutions]
) -> None:
    other.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)"
        " INSERT INTO executions SELECT i, '', '', '', '', 'done', '', '', 1, 1, 1, 1 FROM n"
    )
    fresh = opened("sqlite")
    left = []
    for name in ("a", "b", "c"):
        fresh.claim(entry(name))
        left.append(len(fresh.entries(ExecutionStatus.DONE, 2000)))
    assert left == [700, 200, 0]


@requirement("kernel:ledger-out-of-reach")
def test_a_file_that_stays_locked(
    ledger: KeptExecutions, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_S", 0.2)
    ledger.close()  # the next connection has this bound
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ExecutionsUnavailable, match="another process keeps it locked"):
        ledger.claim(entry("one"))
    other.execute("ROLLBACK")
    assert ledger.claim(entry("one")) is None


@requirement("kernel:ledger-out-of-reach")
def test_a_process_that_stays_in_the_turnstile(
    ledger: KeptExecutions, home: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_S", 0.2)
    with open(home.executions + "-turn", "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert ledger.check(hash_of("one")) is None
        with pytest.raises(ExecutionsUnavailable, match="another process keeps it locked"):
            ledger.claim(entry("one"))
    assert ledger.claim(entry("one")) is None


@requirement("kernel:ledger-moved")
def test_a_deleted_file(ledger: KeptExecutions, home: Places) -> None:
    ledger.claim(entry("one"))
    os.rename(home.executions, home.executions + ".away")
    for act in (
        lambda: ledger.claim(entry("two")),
        lambda: ledger.check(hash_of("one")),
        lambda: ledger.finish(hash_of("one"), ExecutionStatus.DONE),
    ):
        with pytest.raises(ExecutionsUnavailable, match="was deleted or replaced while in use"):
            act()
    assert not os.path.exists(home.executions)
    os.rename(home.executions + ".away", home.executions)
    ledger.finish(hash_of("one"), ExecutionStatus.DONE)
    assert ledger.claim(entry("two")) is None


@requirement("kernel:ledger-moved")
def test_a_replaced_file(
    ledger: KeptExecutions, home: Places, opened: Callable[[str], KeptExecutions]
) -> None:
    os.rename(home.executions, home.executions + ".away")
    fresh = opened("sqlite")
    assert fresh.claim(entry("one")) is None
    with pytest.raises(ExecutionsUnavailable, match="was deleted or replaced while in use"):
        ledger.claim(entry("one"))
    ledger.close()
    with pytest.raises(ExecutionsUnavailable, match="was deleted or replaced while in use"):
        ledger.claim(entry("one"))


@requirement("kernel:ledger-moved")
def test_a_file_that_is_deleted_while_a_claim_waits(
    ledger: SqliteExecutions, home: Places, other: sqlite3.Connection
) -> None:
    other.execute("BEGIN IMMEDIATE")
    ledger.close()
    told: list[object] = []

    def claim() -> None:
        try:
            told.append(ledger.claim(entry("one")))
        except ExecutionsUnavailable as error:
            told.append(str(error))

    thread = threading.Thread(target=claim)
    thread.start()
    wait_until(lambda: ledger._connection, "the claim to wait")
    os.unlink(home.executions)
    other.execute("ROLLBACK")
    thread.join()
    (said,) = told
    assert "deleted or replaced" in str(said)


@requirement("kernel:ledger-moved")
def test_a_file_that_is_replaced_between_claim_and_commit(
    ledger: SqliteExecutions, home: Places
) -> None:
    """The commit itself succeeds: SQLite looks at the name only when it begins to write."""

    def replace() -> None:
        with ledger._writing() as connection:
            connection.execute(
                "INSERT INTO executions VALUES ('a', '', '', '', '', 'done', '', '', 1, 1, 1, 1)"
            )
            os.unlink(home.executions)

    with pytest.raises(ExecutionsUnavailable, match="was deleted or replaced while in use"):
        replace()


def test_a_forked_child_does_not_make_a_new_file(ledger: KeptExecutions, home: Places) -> None:
    os.unlink(home.executions)
    child = os.fork()
    if not child:
        code = 1
        try:
            ledger.claim(entry("one"))
        except ExecutionsUnavailable:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not os.path.exists(home.executions)


@requirement("kernel:ledger-out-of-reach")
@pytest.mark.parametrize("rubbish", [b"rubbish" * 2000, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_file_of_rubbish(home: Places, rubbish: bytes) -> None:
    os.makedirs(home.state)
    Path(home.executions).write_bytes(rubbish)
    with pytest.raises(ExecutionsUnavailable, match="it is damaged"):
        SqliteExecutions(home.executions)
    assert Path(home.executions).read_bytes() == rubbish


@requirement("kernel:ledger-out-of-reach")
def test_a_file_that_is_damaged_while_it_is_open(ledger: KeptExecutions, home: Places) -> None:
    ledger.claim(entry("one"))
    with open(home.executions, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        file.write(os.urandom(size))
    for _ in range(2):
        with pytest.raises(ExecutionsUnavailable, match="is out of reach"):
            ledger.claim(entry("two"))


@requirement("kernel:ledger-out-of-reach")
def test_a_file_that_is_emptied_while_it_is_open(ledger: KeptExecutions, home: Places) -> None:
    """Otherwise the past would be forgotten, and a retry would run again."""
    ledger.claim(entry("one"))
    os.truncate(home.executions, 0)
    for _ in range(2):
        with pytest.raises(ExecutionsUnavailable, match="is out of reach"):
            ledger.claim(entry("one"))


def test_an_unknown_status_in_the_file(ledger: KeptExecutions, other: sqlite3.Connection) -> None:
    ledger.claim(entry("one"))
    other.execute("PRAGMA ignore_check_constraints = ON")
    other.execute("UPDATE executions SET status = 'free'")
    with pytest.raises(ExecutionsUnavailable, match="'free' is not a valid"):
        ledger.claim(entry("one"))


def test_a_file_of_a_later_version(
    ledger: KeptExecutions, other: sqlite3.Connection, home: Places
) -> None:
    other.execute("PRAGMA user_version = 7")
    with pytest.raises(ExecutionsUnavailable, match="has schema 7; this version knows schema 1"):
        SqliteExecutions(home.executions)


@requirement("kernel:ledger-out-of-reach")
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_something_else_in_place_of_the_file(home: Places, make: Callable[[str], None]) -> None:
    os.makedirs(home.state)
    make(home.executions)
    with pytest.raises(ExecutionsUnavailable, match="is not a regular file"):
        SqliteExecutions(home.executions)


@requirement("kernel:ledger-out-of-reach")
def test_a_full_disk(small_home: Places) -> None:
    with closing(SqliteExecutions(small_home.executions)) as ledger:
        assert ledger.claim(entry("before")) is None
        filler = Path(small_home.home, "filler")
        free = os.statvfs(small_home.home)
        filler.write_bytes(b"x" * free.f_bavail * free.f_bsize)
        refused = None
        for number in range(1000):
            try:
                ledger.claim(entry(str(number)))
            except ExecutionsUnavailable as error:
                refused = str(error)
                break
        assert refused is not None
        assert "out of reach: the disk" in refused
        filler.unlink()
        ledger.finish(hash_of("before"), ExecutionStatus.DONE)
        assert ledger.claim(entry(str(number))) is None
        assert status(ledger, "before") == "done"


@requirement("kernel:ledger-out-of-reach")
def test_a_disk_that_becomes_read_only(small_home: Places) -> None:
    with closing(SqliteExecutions(small_home.executions)) as ledger:
        ledger.claim(entry("one"))
        ledger.close()
        subprocess.run(["mount", "-o", "remount,ro", small_home.home], check=True)
        with pytest.raises(ExecutionsUnavailable, match="read-only file system"):
            ledger.claim(entry("two"))
        assert status(ledger, "one") == "claimed"


@requirement("kernel:ledger-out-of-reach")
def test_a_home_that_cannot_be_written(small_home: Places) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_home.home], check=True)
    with pytest.raises(ExecutionsUnavailable, match="read-only file system"):
        SqliteExecutions(small_home.executions)


def test_an_interrupt_does_not_leave_a_transaction_open(
    ledger: SqliteExecutions, opened: Callable[[str], KeptExecutions]
) -> None:
    with ledger._reading() as connection:
        connection.execute("BEGIN IMMEDIATE")
    assert ledger.claim(entry("one")) is None
    assert status(opened("sqlite"), "one") == "claimed"
