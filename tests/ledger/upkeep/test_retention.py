"""Retention drops the oldest, previews first, and the ledger can still be proven."""

import pytest
from tests.ledger.events import START_MS
from tests.ledger.home import Home

from subluminal.ledger.query import calls
from subluminal.ledger.query.questions import CallFilter, Paging
from subluminal.ledger.store.drops import DAY_MS, Drop, DropReason, put_drop
from subluminal.ledger.store.segments import DEFLATED, segment_by_id, unpack
from subluminal.ledger.upkeep import deferred, retention
from subluminal.ledger.upkeep.retention import Retention, used_bytes
from subluminal.trust.home_key import home_key


def settle(home: Home, keep_days: int, max_bytes: int, now_ms: int) -> None:
    key = home_key(home.places.state)
    keeper = Retention(home.store.connection, keep_days, max_bytes, key)
    for _ in range(1_000):
        if not keeper.step(now_ms):
            home.store.forget()
            return
    raise AssertionError("retention does not end")


def fill(home: Home, days: int) -> None:
    producers = [home.producer(f"run{n}", f"shim{n}") for n in range(2)]
    for day in range(days):
        for producer in producers:
            producer.padding = " x" * 500
            producer.clock_ms = START_MS + day * DAY_MS
            if day == 0:
                producer.run_start()
            for _ in range(10):
                producer.call()
            home.ingest()
        home.checkpoint(day)
    while deferred.index_some(home.store.connection, START_MS * 2):
        pass
    while deferred.pack_some(home.store.connection):
        pass


def count(home: Home, table: str) -> int:
    return int(str(home.rows(f"SELECT count(*) FROM {table}")[0][0]))


def test_an_old_call_goes_with_all_its_rows(home: Home) -> None:
    fill(home, 6)
    settle(home, 3, 1 << 40, START_MS + 6 * DAY_MS)
    assert count(home, "tool_calls") == count(home, "previews") == 60
    assert home.rows("SELECT sum(calls) FROM totals") == [(60,)]
    assert home.rows("SELECT sum(calls) FROM rollups") == [(60,)]
    assert count(home, "buckets") == len(home.rows("SELECT DISTINCT bucket FROM rollups"))
    assert count(home, "runs") == 2
    found = calls.find_calls(home.reader(), CallFilter(text="well"), Paging())
    assert len(found.calls) == 60
    report = home.verify()
    assert report.findings == []
    assert report.dropped_events == 182
    assert home.rows("SELECT count(*) FROM segments WHERE lines IS NULL") == [(2,)]
    assert home.take(home.lines()) == 0, "what was dropped is not taken again"


def test_a_run_goes_with_its_last_call(home: Home) -> None:
    fill(home, 2)
    settle(home, 1, 1 << 40, START_MS + 30 * DAY_MS)
    assert count(home, "tool_calls") == count(home, "runs") == count(home, "rollups") == 0
    assert home.verify().findings == []


def test_a_call_whose_start_was_dropped_may_still_end(home: Home) -> None:
    producer = home.producer()
    call_id = producer.begin()
    home.ingest()
    settle(home, 1, 1 << 40, START_MS + 3 * DAY_MS)
    assert count(home, "tool_calls") == 0
    producer.clock_ms += 3 * DAY_MS
    producer.finish(call_id)
    home.ingest()
    assert home.rows("SELECT status, start_n FROM tool_calls") == [("OK", None)]
    assert home.rows("SELECT sum(calls) FROM rollups") == [(1,)]
    assert home.verify().findings == []


def test_previews_go_first_when_it_is_too_large(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PREVIEWS_STEP", 10)
    monkeypatch.setattr(retention, "VACUUM_PAGES", 4)
    fill(home, 8)
    size = used_bytes(home.store.connection)
    settle(home, 10_000, int(size * 0.9), START_MS + DAY_MS)
    assert used_bytes(home.store.connection) <= size * 0.9
    previews = count(home, "previews")
    assert 0 < previews < 160
    assert count(home, "tool_calls") == 160
    assert home.rows("SELECT value FROM counters WHERE name = 'previews_dropped'") == [
        (160 - previews,)
    ]
    oldest = home.rows("SELECT min(id) FROM previews")[0][0]
    assert oldest == 160 - previews + 1
    assert home.verify().findings == []


def test_calls_go_when_previews_do_not_suffice(home: Home) -> None:
    fill(home, 8)
    settle(home, 10_000, 1, START_MS + 9 * DAY_MS)
    assert count(home, "previews") == count(home, "tool_calls") == 0
    assert home.verify().findings == []
    assert home.producer("late", "late").call()
    assert home.ingest() == 3


def test_packing_keeps_every_byte(home: Home) -> None:
    producer = home.producer()
    for _ in range(30):
        producer.call()
    home.ingest()
    before = home.rows("SELECT lines FROM segments")
    assert not deferred.pack_some(home.store.connection)
    ((codec, packed),) = home.rows("SELECT codec, lines FROM segments")
    assert codec == DEFLATED
    assert unpack(bytes(packed)) == before[0][0]  # type: ignore[arg-type]
    assert len(bytes(packed)) < len(bytes(before[0][0])) / 4  # type: ignore[arg-type]
    assert home.verify().holds
    home.store.connection.execute("UPDATE segments SET lines = CAST('junk' AS BLOB)")
    assert "the stored events are damaged" in home.verify().findings[0].message


def test_search_runs_behind_and_catches_up(home: Home) -> None:
    producer = home.producer()
    first = producer.begin()
    home.ingest()
    connection = home.store.connection
    assert not deferred.index_some(connection, producer.clock_ms)
    assert deferred.calls_not_indexed(connection) == 1
    late = producer.clock_ms + deferred.PATIENCE_MS + 1
    deferred.index_some(connection, late)
    assert deferred.calls_not_indexed(connection) == 0

    def found(text: str) -> int:
        return len(calls.find_calls(home.reader(), CallFilter(text=text), Paging()).calls)

    assert (found("file1.py"), found("well")) == (1, 0)
    producer.finish(first)
    home.ingest()
    deferred.index_some(connection, late)
    assert (found("file1.py"), found("well")) == (1, 1)
    assert count(home, "search_again") == 0


@pytest.mark.parametrize("is_indexed", [True, False])
def test_no_call_gets_the_id_of_a_dropped_one(home: Home, is_indexed: bool) -> None:
    """The text index, what came of a hint, and a page's cursor name calls by it."""
    fill(home, 2)
    if not is_indexed:
        home.rows("DELETE FROM counters WHERE name = 'search_done'")
    settle(home, 1, 1 << 40, START_MS + 30 * DAY_MS)
    assert count(home, "tool_calls") == 0
    home.restart()
    later = home.producer("later", "later")
    later.clock_ms = START_MS + 30 * DAY_MS
    later.call()
    home.ingest()
    assert home.rows("SELECT id FROM tool_calls") == [(41,)]
    while deferred.index_some(home.store.connection, START_MS * 2):
        pass
    found = calls.find_calls(home.reader(), CallFilter(text="well"), Paging())
    assert len(found.calls) == 1


def test_a_run_that_began_before_the_events_that_are_left(home: Home) -> None:
    """A run may begin again, with new state; its earliest start counts, also when that is gone."""
    for day in range(3):
        producer = home.producer("run", f"shim{day}")
        producer.clock_ms = START_MS + day * DAY_MS
        producer.run_start()
        producer.call()
        home.ingest()
    settle(home, 1, 1 << 40, START_MS + 2 * DAY_MS + 1000)
    assert home.rows("SELECT started_at FROM runs") == [(START_MS,)]
    assert home.verify().findings == []
    home.rows("UPDATE runs SET started_at = started_at + 9 * ?", DAY_MS)
    assert "`started_at` is" in home.verify().findings[0].message


@pytest.mark.parametrize(
    ("drop", "is_due"),
    [
        (Drop(DropReason.AGE, START_MS, START_MS + 3 * DAY_MS, 3, 9, 9), False),
        (Drop(DropReason.AGE, START_MS, START_MS + 3 * DAY_MS + 1, 3, 9, 9), True),
        (Drop(DropReason.SIZE, START_MS, START_MS, 3, 1000, 900), False),
        (Drop(DropReason.SIZE, START_MS, START_MS, 3, 1000, 901), True),
        (Drop("whim", START_MS, START_MS, 3, 9, 9), False),
    ],
)
def test_a_signed_drop_must_have_been_due_too(home: Home, drop: Drop, is_due: bool) -> None:
    """A signature says who dropped the events. The settings and times in it say whether rightly."""
    home.producer().call()
    home.ingest()
    segment = segment_by_id(home.store.connection, 1)
    home.rows("UPDATE segments SET lines = NULL")
    home.rows("DELETE FROM tool_calls")
    put_drop(home.store.connection, "shim", segment, drop, home_key(home.places.state))
    found = [each.message for each in home.verify().findings if each.table == "segments"]
    assert found == ([] if is_due else ["3 events dropped before they were due"])
