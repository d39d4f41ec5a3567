"""`sub promote HINT --session`: a grant for one run, on record, and no further."""

import json

import pytest
from tests.cli.promoting.conftest import POLICY
from tests.shim.household import wait_until

from subluminal.timestamps import parse_rfc3339


def events(house, kind):
    return [event for event in map(json.loads, house.ledger.lines()) if event["type"] == kind]


def test_calls_of_the_run_pass_the_rule_and_no_other(sub, house):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--session", "--reason", "release week")
    assert ran.code == 0, ran.err
    assert "calls of echo/echo pass rule `short` in run `run-1` until " in ran.out
    wait_until(lambda: house.passes(path="b", n=900), "the shim takes the grant")
    assert house.passes(path="a", n=500)
    assert not house.passes("write_file", path="a")
    assert house.policy.read_text() == POLICY
    other = house.household.start(run="run-2").ready()
    assert other.code("echo", {"path": "a", "n": 500}) != 0
    (decided,) = events(house, "approval_decided")
    given = decided["approval"]
    assert (decided["run_id"], given["answer"], given["rule_id"]) == ("run-1", "approved", "short")
    assert given["reason"] == "release week"
    assert "args_hash" not in given
    assert "uses" not in given
    passed = [
        e["decision"] for e in events(house, "tool_call_decision") if "grant" in e["decision"]
    ]
    assert len(passed) >= 2
    assert passed[-1]["grant"] == {"grant_id": given["grant_id"], "approver": given["by"]}


def test_uses_are_counted(sub, house):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--session", "--uses", "2", "--ttl", "10m", "--json")
    grant = json.loads(ran.out)["grant"]
    assert grant["uses"] == 2
    assert grant["reason"] == f"promoted from {hint}"
    wait_until(lambda: house.passes(path="b", n=900), "the shim takes the grant")
    assert house.passes(path="c", n=900)
    assert not house.passes(path="d", n=900)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--uses", "0"], "`--uses` must be between 1 and 1000"),
        (["--uses", "1001"], "`--uses` must be between 1 and 1000"),
        (["--ttl", "8d"], "`--ttl` can be at most 7d"),
        (["--ttl", "soon"], "--ttl"),
    ],
)
def test_bad_wishes(sub, house, words, message):
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--session", *words)
    assert ran.code == 2
    assert message in ran.err
    assert not events(house, "approval_decided")


def test_a_grant_for_a_rule_that_asks_lasts_no_longer_than_the_rule_says(sub, house):
    house.policy.write_text(
        POLICY.replace("suggest: {n: {clamp_max: 10}}", "require: approval, expires_ms: 600000")
    )
    wait_until(
        lambda: "approve" in str(house.client.call("echo", {"n": 99})), "the policy is taken"
    )
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--session", "--ttl", "11m")
    assert ran.code == 2
    assert "rule `short` allows a grant of at most 10m" in ran.err
    grant = json.loads(sub("promote", hint, "--session", "--json").out)["grant"]
    issued = next(e["ts"] for e in events(house, "approval_decided"))
    assert parse_rfc3339(grant["expires_at"]) - parse_rfc3339(issued) <= 600_000
    wait_until(lambda: house.passes(path="b", n=900), "the shim takes the grant")


def test_a_limit_is_not_passed_by_a_grant(sub, house):
    ran = sub("promote", house.refused("write_file", path="a"), "--session")
    assert ran.code == 2
    assert "rule `few-writes` is of kind `budget`: no exception lets a call pass it" in ran.err
    assert "start a new run" in ran.err


def test_no_agent_grants_itself(sub, house, monkeypatch):
    hint = house.refused(path="a", n=500)
    monkeypatch.setenv("SUB_RUN_ID", "run-1")
    ran = sub("promote", hint, "--session")
    assert ran.code == 2
    assert "`sub promote` is for a person" in ran.err
