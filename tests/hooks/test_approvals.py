"""Calls that need a person: Claude Code asks the one who sits at it; elsewhere `sub approve`."""

import json
import os
import signal

import pytest
from tests.processes import wait_until
from tests.requirements import requirement

POLICY = """\
policy_id: asks
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
rules:
  - rule_id: few
    kind: budget
    match: {tool_name: {glob: [few]}}
    effect: {budget: {scope: run, limit_calls: 1, on_exceed: BLOCK}}
  - rule_id: person
    kind: allow
    match: {tool_name: {glob: [push, few]}}
    effect: {action: ALLOW, reason_code: ASKED, message: pushing needs a person, require: REQUIRED}
"""


@pytest.fixture
def write(household):
    def make(required="approval", settings=""):
        household.write_policy(POLICY.replace("REQUIRED", required))
        if settings:
            (household.home / "config.toml").write_text(settings)

    return make


def decided(household):
    return [event["decision"] for event in household.events("tool_call_decision")]


@pytest.mark.parametrize(
    ("required", "must"),
    [
        ("approval", "approve this call"),
        ("confirmation", "confirm this call"),
    ],
)
def test_claude_asks_its_person(agent, household, write, required, must):
    write(required)
    told = agent.before("push").json
    assert told["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "ask",
        "permissionDecisionReason": f"a person must {must}: pushing needs a person",
    }
    (decision,) = decided(household)
    assert (decision["action"], decision["rule_id"]) == ("ALLOW", "person")
    assert decision["explain"]["reason_code"] == "CLIENT_ASKED"
    agent.after("push")
    assert household.wait_event("tool_call_end")["status"] == "OK"


def test_the_person_said_no(agent, household, write):
    write()
    agent.before("push")
    agent.stop()
    assert household.ends() == [("CANCELLED", "unknown")]


def test_the_same_event_is_asked_again(agent, household, write):
    write()
    first = agent.before("push")
    assert "ask" in first.out
    assert agent.before("push") == first, "a hook that is configured twice"
    (shim,) = agent.hook_shims()
    os.kill(shim, signal.SIGKILL)
    wait_until(lambda: shim not in household.alive(), "it to be dead")
    assert agent.before("push") == first, "the next hook shim has taken the call over"
    assert len(decided(household)) == 1


def test_the_shim_of_a_server_does_not_ask_a_second_time(agent, household):
    household.write_policy(POLICY.replace("REQUIRED", "approval").replace("push", "echo"))
    server = agent.start_server().ready()
    named = {"mcp_server": {"name": "echo"}}
    assert "ask" in agent.before("mcp__echo__echo", {"n": 1}, **named).out
    assert server.code("echo", {"n": 1}, {"claudecode/toolUseId": "t1"}) == 0
    agent.after("mcp__echo__echo", {"n": 1}, **named)
    server.close()
    agent.end()
    household.wait_event("run_end")
    assert household.ends() == [("OK", None)]
    assert len(decided(household)) == 1


@requirement("trust:human")
@pytest.mark.parametrize("required", ["ticket", "step_up", "human"])
def test_what_a_prompt_cannot_give_is_refused(agent, household, write, required):
    """A client can be told to answer its own prompts."""
    write(required)
    assert agent.before("push").json["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_other_rules_stand(agent, household, write):
    write()
    assert "ask" in agent.before("few", {"n": 1}, call="t1").out
    assert "deny" in agent.before("few", {"n": 2}, call="t2").out


def test_the_settings_can_leave_it_to_sub_approve(agent, household, write, person):
    write(settings='[hooks]\nask = "sub"\n')
    refused = agent.before("push", call="t1")
    assert "deny" in refused.out
    request = json.loads(person("approvals", "--json"))
    assert request["approval_id"] in refused.out
    person("approve", request["approval_id"])
    assert agent.before("push", call="t2").is_nothing


def test_a_passphrase_takes_it_from_the_client(agent, household, write, person):
    write()
    set_passphrase(household)
    assert "deny" in agent.before("push").out


def set_passphrase(household):
    from subluminal.core.controls.passphrase import set_passphrase

    (household.home / "state").mkdir(mode=0o700, exist_ok=True)
    set_passphrase(str(household.home / "state"), "open sesame")


@pytest.mark.parametrize("client", ["codex", "gemini", "copilot", "opencode"])
def test_clients_that_cannot_ask(start, household, write, client):
    write()
    refused = start(client).before("push")
    assert "approval" in refused.out
    (event,) = household.events("approval_requested")
    assert event["approval"]["rule_id"] == "person"


def test_a_session_that_asked_replays_and_verifies(agent, household, write, person):
    write()
    agent.before("push", call="t1")
    agent.after("push", call="t1")
    agent.before("Bash", call="t2")
    agent.end()
    household.wait_event("run_end")
    own = str(household.home / "policy.yaml")
    person("policy", "replay", "--run", "s1", "--policy", own, "--fail-on", "any")
    person("ledger", "verify")
    person("ledgerd", "stop")
