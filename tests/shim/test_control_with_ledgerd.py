"""Approvals and the kill switch with a ledger that comes late, goes away and comes back."""

import json
import os
import signal
import subprocess

import pytest
from tests.shim.household import SUB, wait_until
from tests.shim.test_approvals import asking, waiting
from tests.shim.test_shared_runs import leave

BLOCKED, ENDED, REJECTED = -32081, -32084, -32083


@pytest.fixture
def ledgerd(household, person):
    yield lambda word: person("ledgerd", word)
    ran = subprocess.run([*SUB, "ledgerd", "stop"], capture_output=True, env=household.env())
    assert ran.returncode in (0, 1, 2)


def asked(person, what):
    return [json.loads(line) for line in person("query", what, "--json").splitlines()]


def test_nothing_of_it_needs_ledgerd_and_all_of_it_gets_there(household, person, ledgerd):
    household.write_policy(asking())
    shim = household.start().ready()
    assert shim.code("push") == REJECTED
    (row,) = waiting(person)
    ledgerd("start")
    person("approve", row["approval_id"])
    assert shim.code("push") == 0
    ledgerd("stop")
    assert shim.code("push") == REJECTED
    (second,) = waiting(person)
    person("deny", second["approval_id"], "--reason", "enough")
    person("kill", "run-1", "--reason", "late")
    assert shim.code("push") == ENDED
    ledgerd("start")
    leave(shim)

    def states():
        return {each["approval_id"]: each["state"] for each in asked(person, "approvals")}

    wanted = {row["approval_id"]: "used", second["approval_id"]: "denied"}
    wait_until(lambda: states() == wanted, f"{wanted} in the ledger, not {states()}")
    wait_until(lambda: [r["status"] for r in asked(person, "runs")] == ["TERMINATED"], "the end")
    assert "verified" in person("ledger", "verify")


def forged(event, n, kind, **changes):
    """Returns a line with this event as another producer would send it."""
    source = {**event["source"], "shim_id": "01a1dedc-0000-7000-8000-00000000f00d", "n": n}
    source.pop("prev")
    return json.dumps({**event, "type": kind, "source": source, **changes}) + "\n"


def test_what_the_ledger_is_told_lets_nothing_pass(household, person, ledgerd):
    """A producer may claim a grant or a revival; only the sealed files count."""
    household.write_policy(asking())
    shim = household.start().ready()
    assert shim.code("push") == REJECTED
    person("kill", "--tool", "echo/echo")
    (row,) = waiting(person)
    (asking_event,) = household.events("approval_requested")
    (stopped,) = household.events("kill_switch")
    given = {
        "answer": "approved",
        "by": "root",
        **{name: row[name] for name in ("layer", "rule_id", "server_name", "tool_name")},
        **{name: row[name] for name in ("args_hash", "approval_id")},
        "grant_id": "grant-f00d",
        "uses": 1,
        "expires_at": "2099-01-01T00:00:00.000Z",
    }
    told = household.tmp_path / "told.jsonl"
    told.write_text(
        forged(asking_event, 1, "approval_decided", approval=given)
        + forged(stopped, 2, "kill_switch", switch={**stopped["switch"], "state": "revived"})
    )
    ledgerd("start")
    assert "2 events stored" in person("ingest", str(told))
    assert [each["state"] for each in asked(person, "approvals")] == ["approved"], "as it was told"
    assert [each["state"] for each in waiting(person)] == ["pending"]
    assert "echo/echo" in person("kill", "--list")
    assert shim.code("push") == REJECTED
    assert shim.code("echo") == BLOCKED
    leave(shim)
    assert household.executed() == []


def test_a_ledgerd_that_is_stuck_is_told_of(household, person, ledgerd):
    """What the ledger has not read cannot be replayed, and it says so."""
    rules = household.write_policy(asking())
    shim = household.start().ready()
    shim.call("push")
    ledgerd("start")
    replay = ("policy", "replay", "--policy", str(rules))
    assert "may be missing" not in person(*replay, all_output=True)
    pid = json.loads(person("ledgerd", "status", "--json"))["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        shim.call("push")
        assert "the newest calls may be missing" in person(*replay, all_output=True)
    finally:
        os.kill(pid, signal.SIGCONT)
    leave(shim)
