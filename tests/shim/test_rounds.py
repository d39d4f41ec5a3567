"""Calls of several rounds, through the real programs: decided, recorded, bounded (every-mcp-era)."""

import json

import pytest
from tests.shim.household import budget, deny, policy, wait_until
from tests.shim.test_shared_runs import leave


def ask(shim, *, done=False, **more):
    """Continues a call; the first round has neither state nor answers."""
    params = {"name": "ask", "arguments": {"n": 1}, **more}
    if done:
        params["inputResponses"] = {"done": True}
    return shim.answer(shim.send("tools/call", **params))


def begin(household, *rules, **options):
    household.write_policy(policy(*rules))
    shim = household.start(**options).ready()
    household.wait_event("policy_loaded")
    assert ask(shim)["result"]["resultType"] == "input_required"
    return shim


def rounds(household):
    return [
        (event["call"]["round"], event["decision"]["action"])
        for event in household.events("call_round")
    ]


def ours(answer):
    return answer["error"]["data"]["subluminal"]


def test_every_round_is_recorded_and_they_cost_one_unit(household, person):
    shim = begin(household, budget(1))
    for _ in range(3):
        assert "result" in ask(shim, requestState="r")
    assert "result" in ask(shim, requestState="r", done=True)
    assert shim.code() == -32081, "the budget of one call is spent"
    leave(shim)
    assert rounds(household) == [(number, "ALLOW") for number in (2, 3, 4, 5)]
    starts = household.events("tool_call_start")
    assert [event["call"]["seq"] for event in starts] == [1, 2]
    totals = household.run_end()["summary"]
    assert (totals["calls_total"], totals["calls_allowed"]) == (2, 1)
    call_id = starts[0]["call"]["call_id"]
    shown = person("show", call_id)
    assert "rounds" in shown
    assert "5" in shown
    events = json.loads(person("show", call_id, "--json"))["events"]
    assert [event["type"] for event in events] == [
        "tool_call_start",
        "tool_call_decision",
        *["call_round"] * 4,
        "tool_call_end",
    ]


@pytest.mark.parametrize(
    ("words", "action"),
    [(["run-1"], "TERMINATE_RUN"), (["--tool", "echo/ask"], "BLOCK"), (["--all"], "TERMINATE_RUN")],
    ids=" ".join,
)
def test_a_stop_holds_for_the_next_round(household, person, words, action):
    shim = begin(household)
    person("kill", *words, "--reason", "enough")
    answer = ask(shim, requestState="r", done=True)
    assert ours(answer)["action"] == action
    assert "enough" in answer["error"]["message"]
    person("revive", *words)
    assert shim.code() == 0, "the refused round has not ended the run"
    leave(shim)
    assert rounds(household) == [(2, action)]
    assert len(household.executed()) == 2
    assert household.ends()[0] == ("ERROR", "policy_block")


def test_a_rule_that_ended_the_run_ends_its_rounds(household):
    shim = begin(household, budget(1, "TERMINATE_RUN"))
    assert shim.code() == -32084
    assert ours(ask(shim, requestState="r"))["reason_code"] == "RUN_TERMINATED"
    leave(shim)
    assert len(household.executed()) == 1


def test_a_deny_that_came_with_a_reload_holds_for_the_next_round(household, person):
    """And the ledger, its proof, replay and the artifact agree about such a call."""
    shim = begin(household, budget(5))
    household.write_policy(policy(deny("ask"), budget(5)))
    wait_until(lambda: len(household.events("policy_loaded")) > 1, "the new policy")
    answer = ask(shim, requestState="r", done=True)
    assert (ours(answer)["rule_id"], ours(answer)["action"]) == ("no-ask", "BLOCK")
    assert ours(ask(shim, requestState="r"))["rule_id"] == "no-ask", "the call is over"
    leave(shim)
    assert len(household.executed()) == 1
    call_id = ours(answer)["call_id"]
    totals = household.run_end()["summary"]
    assert (totals["calls_total"], totals["calls_allowed"], totals["calls_blocked"]) == (2, 0, 2)
    person("ledgerd", "start")
    try:
        found = [json.loads(line) for line in person("query", "--json").splitlines()]
        assert {(row["decision"], row["rule_id"]) for row in found} == {("BLOCK", "no-ask")}
        assert call_id in [row["call_id"] for row in found]
        shown = person("show", call_id)
        assert "round 2 was refused" in shown
        assert "not that" in shown
        assert "2 calls" in person("ledger", "verify", all_output=True)
        tailed = person("tail", "--no-follow", "--decision", "BLOCK")
        assert "(round 2)" in tailed
        replayed = person("policy", "replay", "--policy", household.home / "policy.yaml", "--json")
        summary = json.loads(replayed.splitlines()[-1])["summary"]
        assert summary["calls"] == 2
    finally:
        person("ledgerd", "stop")
    made = json.loads(person("export", "run", "run-1", "--format", "summary", "--json"))
    assert made["decisions"] == {"BLOCK": 2}
    assert made["violations_total"] == 2


def test_a_replay_of_the_same_policy_finds_no_difference(household, person):
    shim = begin(household, budget(1))
    assert "result" in ask(shim, requestState="r", done=True)
    leave(shim)
    person("policy", "replay", "--policy", household.home / "policy.yaml")
    told = person("policy", "replay", "--policy", household.home / "policy.yaml", "--json")
    assert json.loads(told.splitlines()[-1])["summary"]["same"] == 1


def test_rounds_are_bounded_by_the_settings(household):
    household.write_policy(policy())
    (household.home / "config.toml").write_text("[limits]\nmax_rounds = 3\n")
    shim = begin(household)
    assert "result" in ask(shim, requestState="r")
    assert "result" in ask(shim, requestState="r")
    answer = ask(shim, requestState="r")
    assert ours(answer)["reason_code"] == "ROUNDS_EXCEEDED"
    assert answer["error"]["message"].startswith("Blocked: the server keeps asking")
    leave(shim)
    assert rounds(household) == [(2, "ALLOW"), (3, "ALLOW"), (4, "BLOCK")]
    assert len(household.executed()) == 3
