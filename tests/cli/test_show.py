"""`sub show`: one call, one run; by whole ids and by their ends."""

import json

import pytest
from tests.cli import recorded, snapshots
from tests.ledger.home import Home

from subluminal.cli.commands import show


@pytest.fixture
def full(own_home, monkeypatch):
    monkeypatch.setattr(show, "now", recorded.fixed_now)
    home = Home(str(own_home))
    recorded.record(home)
    home.store.connection.close()
    yield home
    home.close()


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_call(sub, full, number):
    snapshots.check(f"show-call-{number}", sub("show", f"shim-a-0000000{number}"))


@pytest.mark.parametrize("run", ["run-ended", "12a8877c4af5", "run-open"])
def test_a_run(sub, full, run):
    snapshots.check(f"show-{run}-pipe", sub("show", run))
    snapshots.check(f"show-{run}-terminal", sub("show", run, terminal=True))


def test_a_call_of_unknown_outcome(sub, full):
    snapshots.check("show-unknown", sub("show", "shim-c-00000002"))


def test_as_json(sub, full):
    detail = json.loads(sub("show", "shim-a-00000003", "--json").out)
    assert list(detail) == ["call", "hint", "retries", "events", "execution"]
    assert [event["type"] for event in detail["events"]] == [
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
    ]
    found = json.loads(sub("show", "run-ended", "--json").out)
    assert (found["run"]["run_id"], len(found["calls"])) == ("run-ended", 6)


def test_what_is_not_there_or_not_clear(sub, full):
    assert sub("show", "nothing") == (
        2,
        "",
        "error: there is no call or run `nothing`\n"
        "hint: list calls with `sub query`, and runs with `sub query runs`\n",
    )
    ran = sub("show", "00000002")
    assert ran.code == 2
    assert ran.err.endswith("hint: type more characters of the id you mean\n")
    assert sub("show", "*").code == 2


@pytest.mark.parametrize("words", [["show"], ["export", "run"]])
def test_an_empty_name_means_nothing(sub, full, words):
    """Everything ends in it."""
    ran = sub(*words, "")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: there is no call or run ``")
