"""Ledgers and journals of early versions still open and verify; what they never signed is told."""

import hmac
import os
from hashlib import sha256
from pathlib import Path

import pytest
from tests.ledger.events import START_MS
from tests.ledger.home import Home

from subluminal.ledger.proof import verifying
from subluminal.ledger.store.drops import DAY_MS
from subluminal.ledger.upkeep.checkpoints import early_key_path
from subluminal.ledger.upkeep.note import note_path
from subluminal.ledger.upkeep.opening import open_ledger_writer
from subluminal.trust.home_key import home_key

KEY = b"e" * 32


def early(home: Home, *, noted: int | None = None) -> None:
    """Makes the ledger what an early version would have left: HMACs, drops without a record.

    `noted` is the last number in the note, if that is not the last in the ledger.
    """
    connection = home.store.connection
    os.makedirs(home.places.state, exist_ok=True)
    Path(early_key_path(home.places)).write_bytes(KEY)
    lines, before = [], b""
    heads = connection.execute(
        "SELECT shim_id, last_n, head FROM shims ORDER BY shim_id"
    ).fetchall()
    for number in (1, 2, 3):
        told = heads if number == 2 else []
        digest = sha256(b"subluminal-checkpoint-v1\n" + before)
        digest.update(f"{number}\n{number}\n{7}\n".encode())
        for shim_id, n, head in told:
            digest.update(f"{shim_id}\0{n}\0{head.hex()}\n".encode())
        before = digest.digest()
        signature = hmac.digest(KEY, before, "sha256")
        lines.append(f"{number} {before.hex()} {signature.hex()}\n")
        connection.execute(
            "INSERT INTO checkpoints VALUES (?, ?, 7, ?, ?, NULL)",
            (number, number, before, signature),
        )
        connection.executemany(
            "INSERT INTO checkpoint_heads VALUES (2, ?, ?, ?)", [tuple(head) for head in told]
        )
    connection.execute("UPDATE shims SET anchored = head")
    # An early version that was killed between two steps noted a number twice.
    lines.insert(1, f"2 {'ab' * 32} {'cd' * 32}\n")
    Path(note_path(home.places)).write_text("".join(lines))
    if noted is not None:
        connection.execute("DELETE FROM checkpoint_heads WHERE checkpoint > ?", (noted - 1,))
        connection.execute("DELETE FROM checkpoints WHERE id > ?", (noted - 1,))
    connection.execute("DROP TABLE intents")
    connection.execute("DROP TABLE ends_ahead")
    connection.execute("ALTER TABLE tool_calls DROP COLUMN end_shim")
    connection.execute("ALTER TABLE tool_calls DROP COLUMN taint")
    connection.execute("DROP INDEX calls_by_retry")
    connection.execute("ALTER TABLE tool_calls DROP COLUMN retry_of")
    connection.execute("ALTER TABLE runs DROP COLUMN agent_json")
    connection.execute("DROP TABLE drops")
    connection.execute("ALTER TABLE checkpoints DROP COLUMN key_id")
    connection.pragma("user_version", 7)
    home.restart()


def fill(home: Home) -> None:
    for number in (1, 2):
        producer = home.producer(f"run{number}", f"shim{number}")
        producer.run_start()
        for _ in range(8):
            producer.call()
        home.ingest()


def migrated(home: Home) -> Home:
    """ledgerd of this version opens the ledger."""
    open_ledger_writer(home.places, home_key(home.places.state)).close()
    return home


def test_an_early_ledger_verifies_and_is_signed_anew(home: Home) -> None:
    fill(home)
    early(home)
    report = migrated(home).verify()
    assert report.findings == []
    assert report.checkpoints == 3
    home.checkpoint(4)
    report = home.verify()
    assert report.findings == []
    assert report.checkpoints == 4, (
        "the newest one is signed with the home's key, without new events"
    )
    home.checkpoint(5)
    assert home.verify().checkpoints == 4
    home.rows("UPDATE checkpoints SET pos = 8 WHERE id = 2")
    assert "checkpoint 2: its contents were changed" in _first(home)


def test_what_an_early_version_dropped_is_told_and_not_called_damage(home: Home) -> None:
    fill(home)
    home.rows("DELETE FROM tool_calls WHERE shim = 1")
    home.rows("DELETE FROM previews WHERE id NOT IN (SELECT id FROM tool_calls)")
    home.rows("DELETE FROM hints WHERE id NOT IN (SELECT id FROM tool_calls)")
    home.rows("DELETE FROM rollups")
    home.rows("DELETE FROM totals")
    for table, keys in (("rollups", "created_at / 60000, "), ("totals", "")):
        home.rows(
            f"INSERT INTO {table} SELECT {keys}server_name, tool_name, ifnull(decision, ''), "
            "ifnull(status, ''), ifnull(rule_id, ''), count(*) FROM tool_calls "
            f"GROUP BY {'1, 2, 3, 4, 5, 6' if keys else '1, 2, 3, 4, 5'}"
        )
    home.rows("UPDATE segments SET lines = NULL WHERE shim = 1")
    early(home)
    report = migrated(home).verify()
    assert report.findings == []
    assert [(drop.reason, drop.events) for drop in report.drops] == [("unknown", 25)]
    home.rows("UPDATE segments SET lines = NULL WHERE shim = 2")
    assert "no record says that retention dropped them" in _first(home)


def test_an_early_version_that_was_killed_after_it_noted_is_no_damage(home: Home) -> None:
    fill(home)
    early(home, noted=3)
    assert migrated(home).verify().findings == []
    home.checkpoint(4)
    assert home.rows("SELECT max(id) FROM checkpoints") == [(3,)]
    assert home.verify().findings == []


def test_more_than_one_missing_checkpoint_is_damage_there_too(home: Home) -> None:
    fill(home)
    early(home, noted=2)
    assert "checkpoint 2: it is in the file beside the key, but gone" in _first(migrated(home))


def test_journals_without_seals_are_told_while_they_are_old(home: Home) -> None:
    """`Producer` writes as early versions did; its host is made this home's."""
    Path(home.places.state).mkdir(parents=True)
    Path(home.places.state, "host_id").write_text("host\n")
    fill(home)
    home.checkpoint(START_MS + DAY_MS)
    report = home.verify()
    assert report.findings == []
    assert report.unsealed_shims == 2
    late = home.producer("run3", "shim3")
    late.clock_ms = START_MS + 2 * DAY_MS
    late.call()
    home.ingest()
    assert "its journal was never sealed" in _first(home)


# A kill or a full disk between the two steps of a checkpoint


def test_a_kill_before_the_note_is_made_up_for(home: Home) -> None:
    fill(home)
    home.checkpoint(1)
    note = Path(note_path(home.places))
    whole = note.read_bytes()
    for left in (b"", whole[:40]):
        note.write_bytes(left)
        home.producer("more", f"more{len(left)}").call()
        home.ingest()
        before = home.verify()
        assert before.findings == []
        home.checkpoint(2)
        assert home.verify().findings == []
        assert whole in note.read_bytes() + b"\n"
        note.write_bytes(whole)
        home.rows("DELETE FROM checkpoint_heads WHERE checkpoint = 2")
        home.rows("DELETE FROM checkpoints WHERE id = 2")
        home.rows("UPDATE shims SET anchored = NULL WHERE run_id = 'more'")


def _first(home: Home) -> str:
    first = home.verify().findings[0]
    return f"{first.table}: {first.row}: {first.message}"


@pytest.mark.parametrize("when", ["stored_shims", "load_keys", "check_anchors"])
def test_a_ledger_that_is_signed_while_it_is_verified_holds(
    home: Home, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The note is read before the ledger, and again after it; ledgerd may sign at any moment."""
    fill(home)
    home.checkpoint(1)
    step = getattr(verifying, when)
    numbers = iter(range(2, 99))

    def with_checkpoints(*values: object) -> object:
        found = step(*values)
        for _ in range(3):
            number = next(numbers)
            home.producer(f"more{number}", f"more{number}").call()
            home.ingest()
            home.checkpoint(number)
        return found

    monkeypatch.setattr(verifying, when, with_checkpoints)
    for _ in range(2):
        assert home.verify().findings == []
