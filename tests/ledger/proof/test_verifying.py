"""provable-ledger: `sub ledger verify` finds every edit, deletion, insertion and reorder, and names the row."""

import os

import pytest
from tests.ledger.events import decision_json
from tests.ledger.home import Home

from subluminal.errors import SubluminalError
from subluminal.ledger.upkeep.checkpoints import early_key_path, load_early_key
from subluminal.ledger.upkeep.note import note_path
from subluminal.trust.home_key import key_path


@pytest.fixture
def full(home: Home) -> Home:
    """A ledger with two runs, hints, and two checkpoints."""
    for number in (1, 2):
        producer = home.producer(f"run{number}", f"shim{number}")
        producer.run_start()
        for _ in range(60):
            producer.call()
            if producer.calls % 20 == 0:
                home.ingest()
        producer.run_end()
        home.ingest()
        home.checkpoint(number)
    return home


def damage(home: Home, *statements: str) -> str:
    for sql in statements:
        home.store.connection.execute(sql)
    report = home.verify()
    assert not report.holds
    first = report.findings[0]
    return f"{first.table}: {first.row}: {first.message}"


def test_an_untouched_ledger_holds(full: Home) -> None:
    report = full.verify()
    assert report.findings == []
    assert (report.shims, report.calls, report.events, report.checkpoints) == (2, 120, 364, 2)
    assert report.unanchored_events == 0
    assert full.verify("run1").calls == 60


def test_the_events_that_no_checkpoint_signed_are_counted(full: Home) -> None:
    full.producer("run3", "shim3").call()
    full.ingest()
    report = full.verify()
    assert report.holds
    assert report.unanchored_events == 3


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("decision", "'ALLOW'"),
        ("decision", "NULL"),
        ("status", "'ERROR'"),
        ("rule_id", "'other'"),
        ("latency_ms", "latency_ms + 1"),
        ("bytes_in", "0"),
        ("args_hash", "'x'"),
        ("tool_name", "'x'"),
        ("created_at", "created_at + 1"),
        ("run_id", "'run2'"),
        ("preview_truncated", "1"),
        ("end_n", "end_n + 3"),
    ],
)
def test_an_edit_of_any_derived_column_is_found(full: Home, column: str, value: str) -> None:
    where = "call_id = 'shim1-00000013'"
    told = damage(full, f"UPDATE tool_calls SET {column} = {value} WHERE {where}")
    assert told.startswith("tool_calls: call `shim1-00000013`")
    assert f"`{column}`" in told


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DELETE FROM tool_calls WHERE call_id = 'shim1-00000005'", "the row is missing"),
        (
            "INSERT INTO tool_calls SELECT 9999, 'forged', run_id, server_name, tool_name, args_hash,"
            " decision, rule_id, status, latency_ms, bytes_in, bytes_out, 0, created_at, reason_code,"
            " severity, NULL, NULL, seq, transport, shim, start_n, decision_n, end_n, NULL, NULL,"
            " NULL FROM tool_calls WHERE id = 3",
            "call `forged` of run `run1`: there is no event for it",
        ),
        ("UPDATE tool_calls SET taint = 'SYSTEM' WHERE id = 4", "`taint` is `SYSTEM`"),
        ("UPDATE tool_calls SET retry_of = 'x' WHERE id = 4", "`retry_of` is `x`"),
        ("UPDATE previews SET args_preview = '{}' WHERE id = 4", "`args_preview` does not match"),
        ("UPDATE hints SET hint_text = 'x'", "the hint is not the one"),
        ("DELETE FROM hints", "the hint is not the one"),
        ("UPDATE runs SET status = 'FAILED' WHERE run_id = 'run2'", "`status` is `FAILED`"),
        ("UPDATE runs SET agent_id = 'x' WHERE run_id = 'run2'", "`agent_id` is `x`"),
        ("DELETE FROM runs WHERE run_id = 'run1'", "run `run1`: the row is missing"),
        ("DELETE FROM policy_versions", "policy_versions"),
        ("INSERT INTO policy_versions VALUES ('q', '1', 'h', NULL, NULL, 1)", "there is no event"),
        ("UPDATE rollups SET calls = calls + 1", "rollups"),
    ],
)
def test_every_other_change_of_a_row_is_found(full: Home, sql: str, expected: str) -> None:
    assert expected in damage(full, sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "UPDATE segments SET lines = CAST(replace(lines, 'shim1-00000013', 'shim1-00000914') AS BLOB)",
            "was changed",
        ),
        ("DELETE FROM segments WHERE shim = 1 AND first_n = (SELECT min(first_n) FROM segments"
         " WHERE shim = 1 AND first_n > 1)", "they were in the ledger"),
        ("DELETE FROM segments WHERE shim = 1 AND last_n = (SELECT last_n FROM shims WHERE id = 1)",
         "event 182 is missing"),
        ("UPDATE segments SET lines = NULL, head = zeroblob(32) WHERE shim = 1 AND first_n = 1",
         "no record says that retention dropped them"),
        ("UPDATE shims SET head = zeroblob(32) WHERE id = 1", "end of the chain is not"),
        ("UPDATE shims SET last_n = last_n - 1 WHERE id = 1", "segments: shim `shim1`"),
        ("UPDATE checkpoints SET created_at = 7 WHERE id = 1", "its contents were changed"),
        ("UPDATE checkpoints SET signature = zeroblob(32)", "its signature was not made with this key"),
        ("DELETE FROM checkpoints WHERE id = 1", "checkpoint 1: it is missing"),
        ("UPDATE checkpoint_heads SET n = n - 1", "its contents were changed"),
    ],
)  # fmt: skip
def test_every_change_of_the_chain_is_found(full: Home, sql: str, expected: str) -> None:
    assert expected in damage(full, sql)


def test_two_swapped_events_are_found(full: Home) -> None:
    lines = bytes(full.rows("SELECT lines FROM segments WHERE id = 1")[0][0]).split(b"\n")
    lines[4], lines[5] = lines[5], lines[4]
    full.store.connection.execute(
        "UPDATE segments SET lines = ? WHERE id = 1", (b"\n".join(lines),)
    )
    assert "event 5 is missing: event 6 is in its place" in damage(full)


def test_a_whole_shim_that_is_removed_is_found(full: Home) -> None:
    gone = [f"DELETE FROM {table} WHERE shim = 1" for table in ("segments", "tool_calls", "gaps")]
    told = damage(full, *gone, "DELETE FROM shims WHERE id = 1")
    assert told == "shims: shim `shim1`: a checkpoint signed its events, but they are gone"


def test_a_chain_rewritten_from_the_start_is_found(full: Home) -> None:
    """Whoever rewrites a chain with all its hashes lacks the key of the checkpoints."""
    forger = Home(os.path.join(full.places.home, "forged"))
    producer = forger.producer("run1", "shim1")
    producer.run_start()
    for number in range(60):
        producer.call(number=1000 + number)
    producer.run_end()
    lines = forger.lines()
    for table in ("segments", "tool_calls"):
        full.store.connection.execute(f"DELETE FROM {table} WHERE shim = 1")
    full.store.connection.execute("DELETE FROM shims WHERE id = 1")
    full.store.forget()
    full.take(lines)
    report = full.verify()
    assert any("a checkpoint signed" in finding.message for finding in report.findings)
    forger.close()


def test_deleted_checkpoints_are_still_noted_beside_the_key(full: Home) -> None:
    full.producer("run3", "shim3").call()
    full.ingest()
    full.checkpoint(3)
    told = damage(
        full,
        "DELETE FROM checkpoint_heads WHERE checkpoint > 1",
        "DELETE FROM checkpoints WHERE id > 1",
    )
    assert (
        told
        == "checkpoints: checkpoint 2: it is in the file beside the key, but gone from the ledger"
    )


def test_dropped_previews_are_not_damage(full: Home) -> None:
    full.store.connection.execute("UPDATE previews SET args_preview = NULL WHERE id < 50")
    full.store.connection.execute("DELETE FROM previews WHERE id > 100")
    assert full.verify().holds


def test_without_its_key_nothing_is_proven(full: Home) -> None:
    os.unlink(key_path(full.places.state))
    assert "the key is gone" in damage(full)
    with open(early_key_path(full.places), "wb") as file:
        file.write(b"short")
    with pytest.raises(SubluminalError, match="is not a ledger key"):
        load_early_key(full.places)
    assert os.path.exists(note_path(full.places))


def test_the_proof_stops_at_a_hundred_findings(full: Home) -> None:
    full.store.connection.execute("UPDATE tool_calls SET latency_ms = 9")
    assert len(full.verify().findings) == 100


def test_events_of_a_call_without_a_start_in_any_order_hold(home: Home) -> None:
    """A row keeps the number of the last decision, so the proof must look for that one."""
    producer = home.producer()
    producer.call()
    for call_id, is_decided_first in (("decided-twice", True), ("ended-first", False)):
        producer._call = (call_id, producer.tools[1], b"0" * 64)
        if is_decided_first:
            producer.decide(decision_json("BLOCK", None, "NO"))
        else:
            producer.finish(call_id)
        producer.decide(decision_json("ALLOW", None, "YES"))
    home.ingest()
    assert home.verify().findings == []
    home.rows("DELETE FROM tool_calls WHERE call_id = 'ended-first'")
    assert "the row is missing" in home.verify().findings[0].message
