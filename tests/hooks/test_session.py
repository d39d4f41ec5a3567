"""A session of Claude Code through its hooks: what is recorded, and what the client is told."""

import json
import os
import signal
import socket

import pytest
from tests.processes import wait_until
from tests.shim.household import budget, deny, policy


def starts(household):
    return [event["call"] for event in household.events("tool_call_start")]


def test_an_allowed_call_is_recorded_and_the_client_is_told_nothing(agent, household):
    assert agent.before("Bash", {"command": "ls"}).is_nothing
    assert agent.after("Bash", {"command": "ls"}, response={"stdout": "a b"}).is_nothing
    agent.end()
    household.wait_event("run_end")
    (call,) = starts(household)
    assert (call["server_name"], call["tool_name"]) == ("@claude", "Bash")
    assert call["transport"] == "agent_hook"
    assert call["client_call_id"] == "t1"
    assert call["provider"] == "built-in"
    assert household.ends() == [("OK", None)]
    assert household.status("s1") == "SUCCEEDED"
    assert household.run_end("s1")["summary"]["calls_allowed"] == 1


def test_a_refusal_is_one_sentence_for_the_model(agent, household):
    household.write_policy(policy(deny("Bash")))
    told = agent.before("Bash", {"command": "rm -rf /"}).json["hookSpecificOutput"]
    assert told == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "Blocked by policy (rule no-Bash): not that.",
    }
    assert agent.before("Read", call="t2").is_nothing
    assert household.ends() == [("ERROR", "policy_block")]


def test_an_ended_run_stops_the_client(agent, household):
    household.write_policy(policy(budget(1, "TERMINATE_RUN")))
    assert agent.before(call="t1").is_nothing
    told = agent.before(call="t2").json
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert told["continue"] is False
    assert told["stopReason"] == told["hookSpecificOutput"]["permissionDecisionReason"]
    agent.end()
    household.wait_event("run_end")
    assert household.status("s1") == "TERMINATED"


def test_the_tools_of_a_server_belong_to_it(agent, household):
    agent.before("mcp__my_server__a__b", mcp_server={"name": "my.server", "source": "user"})
    agent.before("mcp__other__echo", call="t2")
    names = [(call["server_name"], call["tool_name"]) for call in starts(household)]
    assert names == [("my.server", "a__b"), ("other", "echo")]
    assert not any("provider" in call for call in starts(household))


def test_calls_that_never_ran_are_cancelled_with_the_turn(agent, household):
    agent.before(call="t1")
    agent.stop()
    assert household.ends() == [("CANCELLED", "unknown")]
    agent.before(call="t2")
    agent.event("UserPromptSubmit", prompt="go on")()
    assert household.ends() == [("CANCELLED", "unknown")] * 2
    agent.after(call="t2")
    assert len(household.ends()) == 2, "a call ends once"


def test_a_tool_that_failed(agent, household):
    agent.before(call="t1")
    agent.event(
        "PostToolUseFailure", tool_name="Bash", tool_input={}, tool_use_id="t1", error="no"
    )()
    agent.before(call="t2")
    agent.event(
        "PostToolUseFailure",
        tool_name="Bash",
        tool_input={},
        tool_use_id="t2",
        error="stopped",
        is_interrupt=True,
    )()
    agent.stop()
    assert household.ends() == [("ERROR", "upstream_error"), ("CANCELLED", "unknown")]
    assert household.events("tool_call_end")[0]["error"]["message"] == "no"


@pytest.mark.parametrize("result", [7, {"resultType": "failure", "textResultForLlm": 7}, None])
def test_a_result_of_another_shape_ends_the_call(start, household, result):
    agent = start("copilot")
    agent.before("bash", {"n": 1})
    agent.event("postToolUse", toolName="bash", toolArgs={"n": 1}, toolResult=result)()
    agent.stop()
    ((status, _),) = household.ends()
    assert status != "CANCELLED"


def test_a_result_that_was_cut_within_a_character(agent, household):
    """JavaScript cuts an emoji in two, and writes the half that is left."""
    household.write_policy(policy(deny("rm")))
    agent.before("Bash")
    assert agent.after("Bash", response={"stdout": "\ud83d"}).is_nothing
    agent.stop()
    assert household.ends() == [("OK", None)]
    assert not agent.before("Bash", {"command": "\ud83d"}, "t2").is_nothing, "not decided so"


def test_arguments_that_the_client_changed_are_on_record(agent, household):
    agent.before("Bash", {"command": "ls"})
    agent.after("Bash", {"command": "ls -l"})
    agent.stop()
    (end,) = household.events("tool_call_end")
    (start,) = starts(household)
    assert end["call"]["args_hash"] == start["args_hash"]
    assert end["executed_args_hash"] != start["args_hash"]


def test_one_hook_shim_serves_a_session_and_leaves_with_it(agent, household):
    waits = [agent.ask(args={"n": n}, call=f"t{n}") for n in range(8)]
    assert all(wait().is_nothing for wait in waits)
    assert len(agent.hook_shims()) == 1
    assert len({event["source"]["shim_id"] for event in household.events()}) == 1
    assert len(starts(household)) == 8
    agent.end()
    wait_until(lambda: not agent.hook_shims(), "the hook shim to be gone")
    assert not list((household.home / "state" / "hooks").iterdir())


def test_a_killed_client_ends_the_run(agent, household):
    agent.before()
    (shim,) = agent.hook_shims()
    agent.kill()
    household.wait_event("run_end")
    wait_until(lambda: shim not in household.alive(), "the hook shim to be gone")
    assert household.ends() == [("CANCELLED", "unknown")]
    assert household.status("s1") == "CANCELLED"


def test_a_signal_ends_the_hook_shim_in_order(agent, household):
    agent.before()
    (shim,) = agent.hook_shims()
    os.kill(shim, signal.SIGTERM)
    household.wait_event("run_end")
    wait_until(lambda: shim not in household.alive(), "the hook shim to be gone")
    assert agent.before(call="t2").is_nothing, "the next event starts another"
    assert len(starts(household)) == 2


def test_a_session_that_goes_on_after_its_end(start, household):
    """Copilot ends its session whenever the agent is idle."""
    agent = start("copilot")
    agent.before("bash", {"n": 1})
    (path,) = (household.home / "state" / "hooks").glob("*.sock")
    with socket.socket(socket.AF_UNIX) as front:
        front.connect(str(path))  # the hook shim does not leave while a front is connected
        agent.end()
        agent.before("bash", {"n": 2})
    agent.after("bash", {"n": 2})
    agent.stop()
    assert household.ends() == [("CANCELLED", "unknown"), ("OK", None)]


def test_prompts_are_nowhere(agent, household):
    agent.event("UserPromptSubmit", prompt="my secret plan")()
    agent.before()
    agent.end()
    household.wait_event("run_end")
    assert not household.events("prompt_submitted")
    assert not any(
        b"secret plan" in path.read_bytes() for path in household.home.rglob("*") if path.is_file()
    )


def test_size_and_hash_of_prompts_on_request(agent, household):
    household.home.mkdir(parents=True, mode=0o700)
    (household.home / "config.toml").write_text('[hooks]\nprompts = "metadata"\n')
    agent.event("UserPromptSubmit", prompt="my secret plan")()
    (event,) = household.events("prompt_submitted")
    assert event["prompt"]["bytes"] == len('"my secret plan"')
    assert len(event["prompt"]["hash"]) == 64


def test_the_kill_switch_holds_for_hooks(agent, household, person):
    assert agent.before(call="t1").is_nothing
    person("kill", "s1")
    told = agent.before(call="t2").json
    assert told["continue"] is False


def test_sub_run_id_names_the_run(start, household):
    agent = start(SUB_RUN_ID="ci-7")
    agent.before()
    assert {event["run_id"] for event in household.events()} == {"ci-7"}


def test_the_doors_of_a_run_are_told(agent, household, person):
    agent.before()
    agent.after()
    agent.end()
    household.wait_event("run_end")
    (row,) = map(json.loads, person("query", "runs", "--json").splitlines())
    person("ledgerd", "stop")
    assert row["doors"] == ["agent_hook"]
