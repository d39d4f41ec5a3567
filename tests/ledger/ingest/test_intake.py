"""Everything that was journalled is stored, once, whatever happens on the way."""

import os
from pathlib import Path

import msgspec
import pytest
from tests.ledger.events import ALLOW, BLOCK, HINT, START_MS
from tests.ledger.home import Home
from tests.requirements import requirement

from subluminal.journal.reading import READ_BYTES
from subluminal.ledger.ingest import following, intake

CALLS = "SELECT call_id, decision, rule_id, reason_code, status, latency_ms FROM tool_calls"


def test_the_three_events_of_a_call_become_one_row(home: Home) -> None:
    producer = home.producer()
    producer.run_start()
    producer.call(decision=BLOCK)
    producer.run_end()
    assert home.ingest() == 5
    assert home.rows(CALLS) == [("shim-00000001", "BLOCK", "no-push", "DENYLIST_MATCH", "OK", 3)]
    assert home.rows("SELECT args_preview, result_preview FROM previews") == [
        ('{"path":"/src/file1.py","limit":1}', "result of shim-00000001, all is well")
    ]
    assert home.rows("SELECT run_id, status, mode, started_at, calls FROM runs") == [
        ("run", "SUCCEEDED", "guardrails", START_MS, 1)
    ]
    assert home.rows("SELECT policy_id, version, mode FROM policy_versions") == [
        ("p", "1", "guardrails")
    ]


def test_a_call_may_come_in_pieces(home: Home) -> None:
    """Also across a restart of the daemon, which forgets the calls under way."""
    producer = home.producer()
    call_id = producer.begin(decision=HINT)
    home.ingest()
    assert home.rows(CALLS)[0][4:] == (None, None)
    home.restart()
    producer.finish(call_id)
    home.ingest()
    assert home.rows(CALLS)[0][4:] == ("OK", 3)
    assert home.rows("SELECT count(*), sum(calls) FROM rollups") == [(1, 1)]
    assert home.rows("SELECT count(*), sum(calls) FROM totals") == [(1, 1)]
    assert home.rows("SELECT hint_text, suggested_args_json FROM hints") == [
        ("use a smaller limit", '{"limit":10}')
    ]
    assert home.verify().findings == []


@requirement("001-11.1:append-only")
def test_a_replayed_journal_changes_nothing(home: Home) -> None:
    producer = home.producer()
    producer.run_start()
    for _ in range(20):
        producer.call()
    assert home.ingest() == 61
    before = home.rows("SELECT * FROM tool_calls"), home.rows("SELECT * FROM runs")
    home.store.connection.execute("DELETE FROM journal_offsets")
    home.restart()
    assert home.ingest() == 0
    assert home.take(home.lines()) == 0
    assert (home.rows("SELECT * FROM tool_calls"), home.rows("SELECT * FROM runs")) == before
    assert home.verify().holds


@requirement("001-11.1:append-only")
def test_many_shims_of_many_runs(home: Home) -> None:
    producers = [home.producer(f"run{n // 2}", f"shim{n}", max_bytes=5_000) for n in range(6)]
    for _ in range(30):
        for producer in producers:
            producer.call()
        home.ingest()
    assert home.rows("SELECT count(*), count(DISTINCT run_id) FROM tool_calls") == [(180, 3)]
    assert home.verify().holds


def test_more_than_one_batch_and_rotated_files_in_order(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MAX_EVENTS", 7)
    producer = home.producer(max_bytes=3_000)
    for _ in range(40):
        producer.call()
    assert home.ingest() == 120
    assert home.rows("SELECT count(*) FROM gaps") == [(0,)]
    assert home.verify().holds


def test_more_journals_than_may_be_open(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that is about to be read must not be the one that is closed."""
    monkeypatch.setattr(following, "MAX_OPEN", 2)
    producers = [home.producer(f"run{n}", f"shim{n}") for n in range(5)]
    for turn in range(10):
        producers[turn % 5].call()
        producers[(turn * 3) % 5].call()
        assert home.ingest() == 6


def test_events_that_come_late_fill_their_gap(home: Home) -> None:
    producer = home.producer()
    for _ in range(10):
        producer.call()
    lines = home.lines()
    home.take(lines[:6] + lines[15:])
    assert home.rows("SELECT first_n, last_n FROM gaps") == [(7, 15)]
    report = home.verify()
    assert "events 7 to 15 are missing: they never reached the ledger" in report.findings[0].message
    home.take(lines[9:12])
    assert home.rows("SELECT first_n, last_n FROM gaps") == [(7, 9), (13, 15)]
    home.restart()
    home.take(lines)
    assert home.rows("SELECT first_n, last_n FROM gaps") == []
    assert home.rows("SELECT count(*) FROM tool_calls") == [(10,)]
    assert home.verify().findings == []


def test_corrupt_lines_are_quarantined_with_their_place(home: Home) -> None:
    producer = home.producer()
    producer.call()
    path = Path(producer.journal.path)
    good = path.stat().st_size
    huge = home.lines()[0].replace(b'"bytes_in":', b'"bytes_in":99999999999999999999999')
    huge = huge.replace(b'"n":1,', b'"n":4,')
    bad = [
        b"\x00\xff binary",
        b'{"type":"tool_call_start"}',
        b'{"type":"run_start","v":',
        huge,
        b"[" * 100_000,
        home.lines()[0].replace(b"2026-", b"2O26-"),
        home.lines()[0].replace(b'"n":1', b'"n":-4'),
        home.lines()[0].replace(b'"n":1', b'"n":9').replace(b'"prev":"', b'"prev":"zz'),
    ]
    with path.open("ab") as file:
        file.write(b"\n".join(bad) + b"\n\n")
    producer.call()
    assert home.ingest() == 6
    found = home.rows("SELECT origin, offset, reason FROM quarantine ORDER BY offset")
    assert len(found) == len(bad)
    assert found[0][:2] == (os.path.join("run", "shim.jsonl"), good)
    assert [str(row[2])[:12] for row in found].count("not an event") == 6
    assert "out of range" in str(found[3][2])
    assert "out of range" in str(found[6][2])
    assert home.verify().quarantined == len(bad)
    home.store.connection.execute("DELETE FROM journal_offsets")
    home.restart()
    home.ingest()
    assert home.rows("SELECT count(*) FROM quarantine") == [(len(bad),)]


def test_a_line_of_a_hundred_megabytes_costs_no_memory(home: Home) -> None:
    producer = home.producer()
    producer.call()
    with open(producer.journal.path, "ab") as file:
        for _ in range(100):
            file.write(b"x" * READ_BYTES)
        file.write(b"\n")
    producer.call()
    assert home.ingest() == 6
    (row,) = home.rows("SELECT reason, length(head) FROM quarantine")
    assert row == ("a line of 104857600 bytes is longer than any event", 256)
    assert home.rows("SELECT count(*) FROM tool_calls") == [(2,)]


def test_a_torn_last_line_waits(home: Home) -> None:
    producer = home.producer()
    producer.call()
    line = home.lines()[0].replace(b'"n":1', b'"n":4')
    with open(producer.journal.path, "ab") as file:
        file.write(line[:100])
        file.flush()
        assert home.ingest() == 3
        assert home.ingest() == 0
        file.write(line[100:] + b"\n")
    assert home.ingest() == 1
    assert home.rows("SELECT count(*) FROM quarantine") == [(0,)]


def test_a_clock_that_goes_backwards_is_taken_as_it_is(home: Home) -> None:
    producer = home.producer()
    producer.call()
    producer.clock_ms -= 3_600_000
    producer.call()
    home.ingest()
    times = [row[0] for row in home.rows("SELECT created_at FROM tool_calls ORDER BY id")]
    assert times == sorted(times, reverse=True)
    assert home.verify().findings == []


def test_an_event_of_the_future_is_kept_in_the_chain(home: Home) -> None:
    producer = home.producer()
    producer.run_start()
    # Any line may be journalled; the ledger must not know what it means.
    envelope = {**producer._envelope("2026-11-15T04:00:00.000Z"), "type": "tool_listed", "x": [1]}
    producer.journal.add(msgspec.json.encode(envelope))
    producer.journal.flush()
    producer.call()
    assert home.ingest() == 5
    assert home.rows("SELECT count(*) FROM quarantine") == [(0,)]
    assert home.verify().holds


def test_events_without_numbers_are_taken_once_and_chained_here(home: Home) -> None:
    """Pack 1.3: `n` and `prev` are ours; other producers have neither."""
    producer = home.producer(shim_id="other")
    producer.call(decision=ALLOW)
    foreign = []
    for line in home.lines():
        event = msgspec.json.decode(line)
        del event["source"]["n"], event["source"]["prev"]
        foreign.append(msgspec.json.encode(event))
    assert home.take(foreign) == 3
    assert home.take(foreign) == 0
    home.restart()
    assert home.take(foreign) == 0
    assert home.rows("SELECT count(*), max(status) FROM tool_calls") == [(1, "OK")]
    assert home.verify().findings == []
    home.checkpoint()
    assert home.take(home.lines()) == 0
    assert "are chained and others are not" in str(home.rows("SELECT reason FROM quarantine")[0][0])


def test_a_run_ends_as_its_latest_end_says_in_any_order(home: Home) -> None:
    """shared-runs: a later shim reopens a run; then the last run_end counts."""
    first, second = home.producer(shim_id="a"), home.producer(shim_id="b")
    second.clock_ms += 5_000
    for producer in (second, first):
        producer.run_start()
        producer.run_end()
        home.ingest()
    assert home.rows("SELECT started_at, ended_at FROM runs") == [(START_MS, START_MS + 5_000)]
    assert home.verify().findings == []
