"""`sub ledger rebuild` makes the same rows again, keeps what only the rows know, or changes nothing."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.ledger.events import ALLOW, HINT, START_MS
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd

from subluminal.contracts.decision import PolicyRef
from subluminal.ledger.query import calls
from subluminal.ledger.query.questions import CallFilter, Paging
from subluminal.ledger.store.drops import DAY_MS
from subluminal.ledger.upkeep.deferred import index_some
from subluminal.ledger.upkeep.rebuilding import rebuild
from subluminal.ledger.upkeep.retention import Retention
from subluminal.trust.home_key import home_key

DERIVED = {
    "tool_calls": "*",
    "previews": "*",
    "hints": "*",
    "intents": "*",
    "grant_uses": "*",
    "runs": "*",
    "policy_versions": "*",
    "tool_definitions": "*",
    "approvals": "*",
    "switches": "*",
    "rollups": "*",
    "totals": "*",
    "buckets": "*",
    "gaps": "*",
    "counters": "*",
    "search_docsize": "*",
}


def rows(home: Home, **columns: str) -> dict[str, list[Any]]:
    """Every derived table, sorted."""
    chosen = DERIVED | columns
    return {
        table: sorted(home.rows(f"SELECT {names} FROM {table}"), key=repr)
        for table, names in chosen.items()
    }


def fill(home: Home, calls: int = 30) -> None:
    one, two = home.producer("run1", "one"), home.producer("run2", "two")
    for producer in (one, two):
        producer.run_start()
        producer.load_policy(PolicyRef(policy_id="p", policy_version="2", policy_hash="1" * 64))
        producer.list_tools(push='{"name":"push"}', status=None)
        for number in range(calls):
            producer.call()
            if number % 7 == 0:
                home.ingest()
        producer.issue_hint(producer.begin(3, HINT), "hint-1")
    one.run_end()
    home.ingest()
    index_all(home)
    home.checkpoint(1)


def index_all(home: Home) -> None:
    while index_some(home.store.connection, START_MS * 2):
        pass


def drop(home: Home, days: int, at_ms: int) -> None:
    key = home_key(home.places.state)
    retention = Retention(home.store.connection, days, 1 << 40, key)
    while retention.step(at_ms):
        pass
    home.store.forget()


def test_it_makes_the_same_rows_with_the_same_ids(home: Home) -> None:
    fill(home)
    before = rows(home)
    rebuild(home.store, home.places)
    assert rows(home) == before
    assert home.verify().findings == []
    assert home.producer("late", "late").call()
    assert home.ingest() == 3
    assert home.verify().findings == []


def test_it_makes_all_rows_again_from_nothing_but_events_and_journals(home: Home) -> None:
    fill(home)
    before = rows(home)
    for table in DERIVED:
        if table not in ("counters", "search_docsize"):
            home.rows(f"DELETE FROM {table}")
    assert not home.verify().holds
    rebuild(home.store, home.places)
    assert rows(home) == before, "the texts come from the journals"
    found = calls.find_calls(home.reader(), CallFilter(text="well"), Paging())
    assert len(found.calls) == 60


def test_a_text_that_was_changed_comes_back_from_the_journal_or_goes(home: Home) -> None:
    fill(home)
    home.rows("UPDATE previews SET result_preview = 'forged' WHERE id IN (3, 4)")
    rebuild(home.store, home.places)
    assert home.rows("SELECT count(*) FROM previews WHERE result_preview = 'forged'") == [(0,)]
    assert home.verify().previews_missing == 0
    home.rows("UPDATE previews SET result_preview = 'forged' WHERE id = 3")
    for directory, _, names in os.walk(home.places.journal):
        for name in names:
            os.unlink(os.path.join(directory, name))
    rebuild(home.store, home.places)
    assert home.rows("SELECT result_preview FROM previews WHERE id = 3") == [(None,)]
    report = home.verify()
    assert (report.findings, report.previews_missing) == ([], 1)


def test_what_only_dropped_events_said_is_kept(home: Home) -> None:
    old = home.producer("run1", "old")
    old.run_start()
    old.load_policy(PolicyRef(policy_id="p", policy_version="2", policy_hash="1" * 64))
    old.list_tools(push='{"name":"push"}')
    begun = old.begin(1, HINT)
    home.ingest()
    next_one = home.producer("run1", "next")
    next_one.clock_ms = old.clock_ms + 10
    next_one.begin(1, ALLOW)
    home.ingest()
    old.clock_ms += 3 * DAY_MS
    old.finish(begun)
    for _ in range(5):
        old.call()
    home.ingest()
    index_all(home)
    drop(home, 1, START_MS + 3 * DAY_MS)
    assert home.rows("SELECT count(*) FROM tool_calls") == [(5,)]
    kept = ("runs", "policy_versions", "tool_definitions", "rollups", "totals")
    columns = {"runs": "run_id, agent_id, started_at, mode, policy_hash, calls, last_event_at"}
    before = {table: rows(home, **columns)[table] for table in kept}
    highest = home.rows("SELECT max(id) FROM tool_calls")[0][0]
    rebuild(home.store, home.places)
    after = {table: rows(home, **columns)[table] for table in kept}
    assert after == before
    assert home.verify().findings == []
    lowest = home.rows("SELECT min(id) FROM tool_calls")[0][0]
    assert int(str(lowest)) > int(str(highest)), "no call gets the id of a dropped one"
    assert len(calls.find_calls(home.reader(), CallFilter(text="well"), Paging()).calls) == 5


def test_a_call_whose_start_was_dropped_keeps_its_row_only_if_it_had_one(home: Home) -> None:
    producer = home.producer()
    first, second = producer.begin(), producer.begin()
    home.ingest()
    drop(home, 1, START_MS + 3 * DAY_MS)
    producer.clock_ms += 3 * DAY_MS
    producer.finish(first)
    home.ingest()
    assert home.rows("SELECT call_id, status FROM tool_calls") == [(first, "OK")]
    rebuild(home.store, home.places)
    assert home.rows("SELECT call_id, status FROM tool_calls") == [(first, "OK")]
    assert home.verify().findings == []
    producer.finish(second)
    home.ingest()
    assert home.verify().findings == []


def test_events_that_are_gone_stay_gone_and_are_still_reported(home: Home) -> None:
    fill(home)
    home.rows("DELETE FROM segments WHERE shim = 1 AND first_n > 1 AND first_n < 40")
    home.rows("DELETE FROM gaps")
    rebuild(home.store, home.places)
    report = home.verify()
    assert "they were in the ledger" in report.findings[0].message
    assert {finding.table for finding in report.findings} == {"segments"}
    assert home.rows("SELECT count(*) FROM gaps") == [(0,)]


def test_a_failed_rebuild_changes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    home.rows("UPDATE totals SET calls = 1")
    before = rows(home)
    monkeypatch.setattr("subluminal.ledger.upkeep.rebuilding.true_gaps", lambda connection: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rebuild(home.store, home.places)
    assert rows(home) == before


@pytest.mark.timeout(300)
def test_kill_9_of_a_rebuild_leaves_the_ledger_as_it_was(
    home: Home, ledgerd: Callable[..., Ledgerd]
) -> None:
    fill(home, 1_500)
    home.rows("UPDATE totals SET calls = 1")
    before = rows(home)
    home.restart()
    env = {**os.environ, "SUB_HOME": home.places.home, "SUB_RUNTIME_DIR": home.places.runtime_dir}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "subluminal", "ledger", "rebuild"],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=theirs,  # its progress is shown on a terminal
    )
    told = b""
    try:
        while b"rebuilding: event 6" not in told:
            told += os.read(ours, 4096)
    finally:
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        os.close(ours)
        os.close(theirs)
    assert rows(home) == before
    assert "totals" in {finding.table for finding in home.verify().findings}
    home.restart()
    ran = subprocess.run(
        [sys.executable, "-m", "subluminal", "ledger", "rebuild", "--json"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert '"table":"totals"' in ran.stdout
    assert home.verify().findings == []
