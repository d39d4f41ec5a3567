"""`sub hints`: the list, recovery per rule and per client, and what can be asked of it."""

import json

import pytest
from tests.cli import recorded, snapshots
from tests.ledger.events import HINT, START_MS, decision_json
from tests.ledger.home import Home

from subluminal.cli.commands import hints
from subluminal.clock import rfc3339
from subluminal.ledger.client.http import Client

SINCE = rfc3339(START_MS + 100_000)
BUDGET = decision_json("REJECT_WITH_HINT", "few", "BUDGET_EXCEEDED").replace(
    b'"suggested_args":{"limit":10}', b'"suggested_args":null'
).replace(b"ARG_FIX", b"BUDGET")  # fmt: skip


@pytest.fixture
def home(own_home, monkeypatch):
    """A home whose ledger is up to date, so that nothing is started."""
    monkeypatch.setattr(hints, "now", recorded.fixed_now)
    made = Home(str(own_home))
    yield made
    made.close()


@pytest.fixture
def full(home):
    """A hint that was followed, one that was not, one of another rule, one under way."""
    first = home.producer("run-followed", "shim-a")
    first.run_start()
    first.finish(first.begin(2, HINT))
    first.finish(first.begin(6))
    first.run_end()
    stubborn = home.producer("run-stubborn", "shim-b")
    stubborn.run_start()
    stubborn.finish(stubborn.begin(2, HINT))
    stubborn.finish(stubborn.begin(2, HINT))
    stubborn.finish(stubborn.begin(3, BUDGET))
    stubborn.run_end()
    open_run = home.producer("run-open", "shim-c")
    open_run.clock_ms += 120_000
    open_run.run_start()
    open_run.finish(open_run.begin(2, HINT))
    recorded.settle(home)
    home.store.connection.close()
    return home


def rows(ran):
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def test_in_a_pipe(sub, full):
    snapshots.check("hints-pipe", sub("hints"))


def test_on_a_terminal(sub, full):
    snapshots.check("hints-terminal", sub("hints", terminal=True))


@pytest.mark.parametrize("by", ["rule", "client", "both"])
def test_recovery(sub, full, by):
    snapshots.check(f"hints-by-{by}", sub("hints", "--by", by))


FIELDS = [
    "hint_id",
    "call_id",
    "run_id",
    "rule_id",
    "hint_kind",
    "hint_text",
    "suggested_args",
    "outcome",
]


def test_rows_for_scripts(sub, full):
    found = rows(sub("hints", "--json", "--order", "oldest"))
    assert all(set(FIELDS) <= set(row) for row in found)
    assert [(row["run_id"], row["rule_id"], row["outcome"]) for row in found] == [
        ("run-followed", "small", "followed"),
        ("run-stubborn", "small", "retried"),
        ("run-stubborn", "small", "gave_up"),
        ("run-stubborn", "few", "gave_up"),
        ("run-open", "small", "pending"),
    ]


def test_filters(sub, full):
    assert len(rows(sub("hints", "--json", "--outcome", "gave_up"))) == 2
    assert len(rows(sub("hints", "--json", "--rule", "few"))) == 1
    assert len(rows(sub("hints", "--json", "run:run-open"))) == 1
    assert len(rows(sub("hints", "--json", "--since", SINCE))) == 1
    assert len(rows(sub("hints", "--json", "--limit", "2"))) == 2
    (row,) = rows(sub("hints", "--by", "rule", "--json", "--since", SINCE))
    assert (row["rule_id"], row["issued"], row["pending"]) == ("small", 1, 1)
    assert rows(sub("hints", "--by", "rule", "--json", "--until", "2020-01-01")) == []


def test_recovery_is_not_told_of_a_part(sub, full):
    """Counts over all hints above a list of a few would be read as theirs."""
    assert "HELPED" not in sub("hints", "--rule", "few").out


@pytest.mark.parametrize(
    "words", [["--by", "rule", "--rule", "few"], ["--by", "rule", "-since:1d"], ["--limit", "0"]]
)
def test_what_cannot_be_asked(sub, full, words):
    ran = sub("hints", *words)
    assert (ran.code, ran.out) == (2, "")


def test_empty(sub, home):
    assert sub("hints") == (0, "", "No hints: no call was refused with a hint.\n")
    assert sub("hints", "--by", "client") == (0, "", "No hints: no call was refused with a hint.\n")
    assert sub("hints", "--json") == (0, "", "")


def test_a_daemon_that_does_not_answer_is_no_bug(sub, full, monkeypatch):
    monkeypatch.setattr(Client, "answers", lambda _client: True)
    ran = sub("hints")
    assert ran.code == 2
    assert ran.err == "error: ledgerd does not answer\nhint: run `sub doctor` to find out why\n"
