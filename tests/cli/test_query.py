"""`sub query`, every screen of it: in a pipe, on a terminal, without colour, empty and full."""

import hashlib
import json

import pytest
from tests.cli import recorded, snapshots
from tests.ledger.events import START_MS
from tests.ledger.home import Home
from tests.requirements import requirement

from subluminal.cli.commands import query, show
from subluminal.clock import rfc3339
from subluminal.ledger.client.http import Client

SINCE = rfc3339(START_MS + 119_000)
LISTS = ["calls", "runs", "hints", "tools"]


@pytest.fixture
def home(own_home, monkeypatch):
    """A home whose ledger is up to date, so that nothing is started."""
    monkeypatch.setattr(query, "now", recorded.fixed_now)
    monkeypatch.setattr(show, "now", recorded.fixed_now)
    made = Home(str(own_home))
    yield made
    made.close()


@pytest.fixture
def full(home):
    recorded.record(home)
    home.store.connection.close()
    return home


@pytest.mark.parametrize("what", LISTS)
def test_in_a_pipe(sub, full, what):
    snapshots.check(f"query-{what}-pipe", sub("query", what))


@pytest.mark.parametrize("what", LISTS)
def test_on_a_terminal(sub, full, what):
    ran = sub("query", what, terminal=True)
    snapshots.check(f"query-{what}-terminal", ran)


@pytest.mark.parametrize("what", LISTS)
def test_on_a_terminal_without_colour(sub, full, what, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    ran = sub("query", what, terminal=True)
    snapshots.check(f"query-{what}-plain", ran)
    assert max(len(line) for line in ran.out.splitlines()) <= 80


@pytest.mark.parametrize("what", LISTS)
def test_empty(sub, home, what):
    assert sub("query", what) == (
        0,
        "",
        f"No {what} recorded yet. Start an agent with `sub run -- AGENT`.\n",
    )
    assert sub("query", what, "--json") == (0, "", "")


def test_nothing_matches(sub, full):
    assert sub("query", "server:nowhere") == (0, "", "No calls match.\n")


COLUMNS = [
    "call_id",
    "run_id",
    "server_name",
    "tool_name",
    "args_hash",
    "decision",
    "rule_id",
    "status",
    "latency_ms",
    "bytes_in",
    "bytes_out",
    "preview_truncated",
    "created_at",
    "ts",
    "reason_code",
    "preview",
]


def test_rows_for_scripts(sub, full):
    rows = [json.loads(line) for line in sub("query", "calls", "--json").out.splitlines()]
    assert len(rows) == 10
    assert set(COLUMNS) <= set(rows[0])
    assert set(rows[0]["preview"]) == {
        "truncated",
        "args_preview",
        "result_preview",
        "redaction_flags",
    }
    (row,) = [json.loads(line) for line in sub("query", "hints", "--json").out.splitlines()]
    wanted = ["call_id", "run_id", "rule_id", "hint_kind", "hint_text", "suggested_args", "outcome"]
    assert set(wanted) <= set(row)


def ids(ran):
    return [json.loads(line)["call_id"] for line in ran.out.splitlines()]


def test_calls_of_unknown_outcome_are_found(sub, full):
    ran = sub("query", "calls", "--status", "UNKNOWN", "--json")
    (row,) = [json.loads(line) for line in ran.out.splitlines()]
    assert (row["call_id"], row["status"]) == ("shim-c-00000002", "UNKNOWN")
    assert ids(sub("query", "status:unknown", "--json")) == ["shim-c-00000002"]


@requirement("001-16E:query")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--decision", "BLOCK"], ["shim-a-00000002"]),
        (["--decision", "block,throttle"], ["shim-a-00000002", "shim-a-00000005"]),
        (["--rule", "no-*"], ["shim-a-00000002", "shim-b-00000002"]),
        (["--text", "file3"], ["shim-a-00000004", "shim-c-00000002"]),
        (["--run", "run-open", "--order", "oldest"], ["shim-c-00000001", "shim-c-00000002"]),
        (["--run", "run-open", "--order", "newest"], ["shim-c-00000002", "shim-c-00000001"]),
        (["--run", "run-ended", "--limit", "2"], ["shim-a-00000005", "shim-a-00000006"]),
        (
            ["--run", "run-ended", "--limit", "2", "--order", "newest"],
            ["shim-a-00000006", "shim-a-00000005"],
        ),
        (["server:git", "tool:push", "decision!=ALLOW"], ["shim-a-00000005"]),
        (["text:all is well", "run:run-open"], ["shim-c-00000001"]),
        (["--since", SINCE], ["shim-c-00000001", "shim-c-00000002"]),
    ],
)
def test_filters(sub, full, words, expected):
    assert ids(sub("query", "calls", *words, "--json")) == expected


def test_terms_may_stand_anywhere_among_the_options(sub, full):
    expected = sub("query", "calls", "decision:BLOCK", "server:git", "--json")
    assert expected.out
    for words in (
        ["calls", "--json", "decision:BLOCK", "server:git"],
        ["--json", "calls", "decision:BLOCK", "--order", "oldest", "server:git"],
        ["calls", "decision:BLOCK", "--json", "--", "server:git"],
    ):
        assert sub("query", *words) == expected
    ran = sub("query", "--json", "runs", "--", "-status:RUNNING")
    assert (ran.code, ran.err) == (0, "")
    ran = sub("query", "runs", "--jsn", "status:FAILED")
    assert (ran.code, ran.err) == (
        2,
        "error: unrecognized arguments: --jsn\nhint: did you mean `--json`?\n",
    )


def test_problems_are_pointed_at(sub, full):
    snapshots.check("query-bad-filter", sub("query", "server:git decison:BLOCK"))
    snapshots.check("query-bad-flag", sub("query", "--decision", "BLOK"))
    assert sub("query", "--limit", "0").code == 2
    assert sub("query", "tools", "decision:BLOCK") == (
        2,
        "",
        "error: tools cannot be filtered by `decision`\nhint: use `server` or `tool`\n",
    )
    assert sub("query", "runs", "--server", "x").code == 2


def test_a_tool_has_the_hash_of_its_definition(sub, home):
    producer = home.producer()
    producer.call(4)
    producer.list_tools(push="text", pull="other")
    home.ingest()
    listed, tool = map(json.loads, sub("query", "tools", "--json").out.splitlines())
    assert (listed["tool_name"], listed["calls"]) == ("pull", 0)
    assert tool["tool_name"] == "push"
    assert tool["definition_hash"] == hashlib.sha256(b"text").hexdigest()
    assert tool["changed_at"] is None
    producer.list_tools(push="new text")
    home.ingest()
    (tool,) = map(json.loads, sub("query", "tools", "tool:push", "--json").out.splitlines())
    assert tool["changed_at"] == tool["listed_at"]


def test_more_rows_than_the_ledger_gives_at_once(sub, home):
    producer = home.producer("many", "many")
    for number in range(2_345):
        producer.call(number)
    home.ingest()
    home.store.connection.close()
    assert len(sub("query", "--limit", "2200", "--json").out.splitlines()) == 2_200
    ran = sub("query", "--limit", "5000", terminal=True)
    assert len(ran.out.splitlines()) == 2_346
    assert len(set(ids(sub("query", "--limit", "5000", "--json")))) == 2_345


def test_a_terminal_executes_nothing(sub, home):
    """Control, ANSI and bidi characters are shown, not sent."""
    recorded.record_evil(home)
    home.store.connection.close()
    for words in (["query"], ["query", "runs"], ["query", "tools"], ["show", "evil-1"]):
        for terminal in (True, False):
            out = sub(*words, terminal=terminal).out
            plain = out.replace("\x1b[", "").replace("\n", "")
            assert not any(char in plain for char in "\x1b\u202e\r\x07"), words
            assert "\x1b[31me" not in out
            assert terminal or "\\x1b[31m" in out, words
    snapshots.check("query-evil", sub("query", terminal=True))
    snapshots.check("show-evil", sub("show", "evil-1"))


def test_narrow_and_wide(sub, full, monkeypatch):
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")
        lines = sub("query", terminal=True).out.splitlines()
        assert max(map(len, lines)) <= max(width, 72)


@pytest.mark.parametrize("what", [*LISTS, "approvals"])
def test_a_ledgerd_that_is_too_old_to_know(sub, home, monkeypatch, what):
    """It was left running when `sub` was upgraded."""
    monkeypatch.setattr(Client, "answers", lambda _client: True)
    monkeypatch.setattr(Client, "find", lambda *_asked: None)
    ran = sub("query", what)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: the running ledgerd is older than this `sub`")
    assert "`sub ledgerd stop`" in ran.err


@requirement("trust:outcome-filter")
def test_calls_by_outcome(sub, full):
    rows = [json.loads(line) for line in sub("query", "calls", "--json").out.splitlines()]
    assert {row["outcome"] for row in rows} == {"ALLOW", "DENY", "RATE_LIMITED", "KILL_SWITCH"}
    for outcome in ("DENY", "RATE_LIMITED", "KILL_SWITCH"):
        found = sub("query", "--outcome", outcome.lower(), "--json").out.splitlines()
        assert [json.loads(line) for line in found] == [
            row for row in rows if row["outcome"] == outcome
        ]
    ran = sub("query", "--outcome", "REJECT")
    assert (ran.code, "REJECTED" in ran.err) == (2, True)
    assert "RATE_LIMITED" in sub("tail", "--no-follow", "--outcome", "RATE_LIMITED", "--json").out
    assert sub("hints", "--outcome", "followed").code == 0, "the outcome of a hint is another one"
    assert sub("hints", "--outcome", "DENY").code == 2
