"""`sub promote HINT --session`: a grant for one run, on record, and no further."""

import json

import pytest
from tests.cli.promoting.conftest import POLICY
from tests.requirements import requirement
from tests.shim.household import wait_until

from subluminal.timestamps import parse_rfc3339


def events(house, kind):
    return [event for event in map(json.loads, house.ledger.lines()) if event["type"] == kind]


@requirement("001-10.3:promote")
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


@requirement("trust:human")
@pytest.mark.parametrize("require", ["human", "ticket", "step_up"])
def test_what_only_sub_approve_can_give_is_not_granted(sub, house, require):
    house.policy.write_text(POLICY.replace("suggest: {n: {clamp_max: 10}}", f"require: {require}"))
    code = f"{require.upper()}_REQUIRED"
    wait_until(lambda: code in str(house.client.call("echo", {"n": 99})), "the policy is taken")
    hint = house.refused(path="a", n=500)
    ran = sub("promote", hint, "--session")
    assert ran.code == 2
    assert f"rule `short` requires `{require}`" in ran.err
    assert "sub approve" in ran.err
    assert not events(house, "approval_decided")


LIMITS = {
    "budget": "limit_calls: 0, on_exceed: REJECT_WITH_HINT",
    "rate_limit": "capacity: 1, refill_tokens: 1, refill_period_ms: 3600000, on_limit: REJECT_WITH_HINT",
    "breaker": "repeat_threshold: 2, repeat_window_ms: 3600000, on_trip: REJECT_WITH_HINT",
    "dedupe": "window_ms: 3600000, on_duplicate: REJECT_WITH_HINT",
}  # fmt: skip


RULE = """\
  - rule_id: few-writes
    kind: %s
    match: {tool_name: {glob: ["write*"]}}
    effect: {%s: {scope: run, %s}}

"""


def limited(house, kind):
    """Puts one limit into the policy, and spends it with the call that it then refuses."""
    head, _, rest = POLICY.partition("  - rule_id: few-writes")
    tail = rest[rest.index("  # Long") :]
    rule = RULE % (kind, kind, LIMITS[kind])
    assert house.passes()
    house.policy.write_text(head + rule + tail)
    loads = house.household.events
    wait_until(lambda: house.passes() and len(loads("policy_loaded")) >= 2, "the new policy")
    wait_until(lambda: not house.passes("write_file", path="a"), "the limit refuses")
    return house.refused("write_file", path="a")


@pytest.mark.parametrize("kind", LIMITS)
def test_a_limit_lets_the_very_call_pass_once(sub, house, kind):
    """Other arguments, another run and every other rule stay as they were."""
    hint = limited(house, kind)
    ran = sub("promote", hint, "--session")
    assert ran.code == 0, ran.err
    said = "1 call of echo/write_file with these arguments passes rule `few-writes` in run `run-1`"
    assert said in ran.out
    if kind in ("budget", "rate_limit"):
        assert not house.passes("write_file", path="b")
    assert house.passes("write_file", path="a")
    assert not house.passes("write_file", path="a"), "the grant is spent"
    assert not house.passes(path="a", n=500), "the other rules hold"
    (decided,) = events(house, "approval_decided")
    given = decided["approval"]
    assert given["rule_id"] == "few-writes"
    assert (given["uses"], len(given["args_hash"])) == (1, 64)
    passed = [e for e in events(house, "tool_call_decision") if "grant" in e["decision"]]
    (decision,) = [each["decision"] for each in passed]
    assert [decision[name] for name in ("action", "rule_id")] == ["ALLOW", "few-writes"]
    assert decision["explain"]["reason_code"] == "APPROVAL_GRANTED"
    assert decision["grant"] == {"grant_id": given["grant_id"], "approver": given["by"]}
    assert "breaker_trip" not in [
        e["type"]
        for e in map(json.loads, house.ledger.lines())
        if e.get("call", {}).get("call_id") == passed[0]["call"]["call_id"]
    ]


def test_a_limit_is_passed_as_often_as_a_person_says(sub, house):
    hint = house.refused("write_file", path="a")
    ran = sub("promote", hint, "--session", "--uses", "2")
    assert "2 calls of echo/write_file with these arguments pass rule `few-writes`" in ran.out
    assert [house.passes("write_file", path="a") for _ in range(3)] == [True, True, False]


def test_a_granted_limit_is_replayed_as_it_was(sub, house):
    hint = house.refused("write_file", path="a")
    assert sub("promote", hint, "--session").code == 0
    assert house.passes("write_file", path="a")
    house.ingest()
    ran = sub("policy", "replay", "--policy", str(house.policy), "--json", "--all")
    rows = [json.loads(line) for line in ran.out.splitlines()[:-1]]
    assert [(row["change"], row["now"]["action"]) for row in rows] == [
        ("same", "REJECT_WITH_HINT"),
        ("same", "ALLOW"),
    ]


def test_no_agent_grants_itself(sub, house, monkeypatch):
    hint = house.refused(path="a", n=500)
    monkeypatch.setenv("SUB_RUN_ID", "run-1")
    ran = sub("promote", hint, "--session")
    assert ran.code == 2
    assert "`sub promote` is for a person" in ran.err
