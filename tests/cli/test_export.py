"""`sub export run`: the events as they were written, and a summary."""

import json
import pathlib

import pytest
from tests.cli import recorded, snapshots
from tests.ledger.home import Home


@pytest.fixture
def full(own_home):
    home = Home(str(own_home))
    recorded.record(home)
    home.store.connection.close()
    yield home
    home.close()


def test_the_events_are_those_of_the_journal(sub, full):
    ran = sub("export", "run", "run-ended")
    journal = pathlib.Path(full.places.journal) / "run-ended" / "shim-a.jsonl"
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == journal.read_text()


def test_into_a_file(sub, full, tmp_path):
    target = tmp_path / "events.jsonl"
    assert sub("export", "run", "12a8877c4af5", "-o", str(target)) == (0, "", "")
    assert json.loads(target.read_text().splitlines()[0])["type"] == "run_start"
    assert target.stat().st_mode & 0o777 == 0o600
    assert sub("ledger", "verify", "--artifact", str(tmp_path)).code == 0
    ran = sub("export", "run", "run-ended", "-o", str(tmp_path / "no" / "where"))
    assert (ran.code, ran.out) == (2, "")


def test_the_summary(sub, full):
    snapshots.check("export-summary", sub("export", "run", "run-ended", "--format", "summary"))
    found = json.loads(sub("export", "run", "run-open", "--json").out)
    assert found["statuses"] == {"OK": 1, "UNKNOWN": 1}
    assert found["status"] is None


def test_what_is_no_run(sub, full):
    assert sub("export", "run", "shim-a-00000001") == (
        2,
        "",
        "error: `shim-a-00000001` is a call, not a run\nhint: `sub query runs` lists runs\n",
    )
