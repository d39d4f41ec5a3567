"""The end of a call that another shim began: joined, proven, rebuilt and dropped with its call."""

import pytest
from tests.ledger.events import Producer
from tests.ledger.home import Home

from subluminal.ledger.proof import Report
from subluminal.ledger.upkeep.rebuilding import rebuild
from subluminal.ledger.upkeep.retention import Retention
from subluminal.trust.home_key import home_key

ROWS = (
    "SELECT c.call_id, status, latency_ms, bytes_out, start_n, end_n, c.shim, end_shim, "
    "args_preview, result_preview FROM tool_calls c LEFT JOIN previews USING (id) ORDER BY c.id"
)
DAY_MS = 86_400_000


def damage(report: Report) -> list[str]:
    return [str(finding) for finding in report.findings]


def two(home: Home) -> tuple[Producer, Producer]:
    return home.producer("run", "hook"), home.producer("run", "shim")


def handed(home: Home) -> tuple[Producer, Producer, str]:
    """A call that the hook began and the shim ended, all of it in the ledger."""
    hook, shim = two(home)
    call_id = hook.begin()
    home.ingest()
    shim.finish_for(hook, call_id)
    home.ingest()
    return hook, shim, call_id


def check(home: Home, calls: int = 1) -> None:
    """One row, proven, and the same after a rebuild."""
    rows = home.rows(ROWS)
    assert len(rows) == calls
    assert all(row[1] == "OK" and row[8] and row[9] for row in rows)
    assert home.rows("SELECT count(*) FROM ends_ahead") == [(0,)]
    assert damage(home.verify()) == []
    rebuild(home.store, home.places)
    assert home.rows(ROWS) == rows
    assert damage(home.verify()) == []


def test_an_end_joins_the_call_of_another_shim(home: Home) -> None:
    _, _, call_id = handed(home)
    (row,) = home.rows(ROWS)
    assert row[:8] == (call_id, "OK", 3, 640, 1, 1, 1, 2)
    check(home)


def test_both_in_one_batch(home: Home) -> None:
    hook, shim = two(home)
    for _ in range(3):
        shim.finish_for(hook, hook.begin())
    home.ingest()
    check(home, 3)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_end_that_comes_before_its_start_waits(home: Home, restarts: bool) -> None:
    hook, shim = two(home)
    call_id = hook.begin()
    shim.finish_for(hook, call_id)
    lines = home.lines()
    home.take([line for line in lines if b'"tool_call_end"' in line])
    assert home.rows(ROWS) == []
    assert home.rows("SELECT begun_by, call_id FROM ends_ahead") == [("hook", call_id)]
    assert damage(home.verify()) == []
    rebuild(home.store, home.places)
    if restarts:
        home.restart()
    home.take([line for line in lines if b'"tool_call_end"' not in line])
    check(home)


def test_an_end_of_another_run_is_not_taken_for_it(home: Home) -> None:
    hook, other = home.producer("run", "hook"), home.producer("other", "shim")
    call_id = hook.begin()
    home.ingest()
    other.finish_for(hook, call_id)
    home.ingest()
    assert [row[1] for row in home.rows(ROWS)] == [None]


def test_an_end_of_the_call_s_own_shim_goes_before_it(home: Home) -> None:
    hook, shim, call_id = handed(home)
    hook.finish(call_id, "ERROR")
    home.ingest()
    shim.finish_for(hook, call_id)
    home.ingest()
    (row,) = home.rows(ROWS)
    assert row[1] == "ERROR"
    assert row[7] is None
    assert damage(home.verify()) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE tool_calls SET status = 'ERROR'", "`status` is"),
        ("UPDATE tool_calls SET latency_ms = 9", "`latency_ms` is"),
        ("UPDATE tool_calls SET end_shim = 1", "`status` is"),
        ("UPDATE tool_calls SET end_n = 2", "`status` is"),
        ("UPDATE tool_calls SET end_n = NULL, end_shim = NULL, status = NULL", "its end, by"),
        ("DELETE FROM tool_calls", "its end, by another shim, is missing"),
        ("UPDATE previews SET result_preview = 'x'", "`result_preview` does not match"),
    ],
)
def test_every_change_of_it_is_found(home: Home, sql: str, said: str) -> None:
    handed(home)
    home.store.connection.execute(sql)
    assert any(said in each for each in damage(home.verify())), damage(home.verify())
    rebuild(home.store, home.places)
    assert damage(home.verify()) == []


def test_an_end_ahead_that_was_removed_is_found(home: Home) -> None:
    hook, shim = two(home)
    shim.finish_for(hook, hook.begin())
    home.take([line for line in home.lines() if b'"tool_call_end"' in line])
    home.store.connection.execute("DELETE FROM ends_ahead")
    assert any("its end, by another shim" in each for each in damage(home.verify()))


@pytest.mark.parametrize("first", [0, 1])
def test_retention_may_drop_either_shim_first(home: Home, first: int) -> None:
    """A call goes with its start; a row whose end was dropped keeps what the end said."""
    hook, shim = two(home)
    late = (hook, shim)[1 - first]
    late.clock_ms += 10 * DAY_MS
    call_id = hook.begin()
    shim.finish_for(hook, call_id)
    home.ingest()
    home.checkpoint()
    retention = Retention(home.store.connection, 5, 1 << 40, home_key(home.places.state))
    while retention.step((hook, shim)[first].clock_ms + 6 * DAY_MS):
        pass
    assert [row[1] for row in home.rows(ROWS)] == ([] if first == 0 else ["OK"])
    assert damage(home.verify()) == []
    rebuild(home.store, home.places)
    assert damage(home.verify()) == []
    assert home.rows("SELECT count(*) FROM ends_ahead") == [(0,)]
