"""Every refusal carries its contract, and nothing that stayed here is on record as forwarded."""

import json
import sys

import msgspec
import pytest
from tests.requirements import requirement
from tests.shim.household import budget, deny, policy, wait_until
from tests.shim.test_bugs import FAULTY
from tests.shim.test_shared_runs import leave

from subluminal.contracts.decision import SubluminalErrorData

OUR_CODES = (*range(-32084, -32080), *range(-31084, -31080))


def contract_of(household, answer):
    """Returns `error.data.subluminal` of an answer; its call must be on record."""
    error = answer["error"]
    assert error["code"] in OUR_CODES, error
    ours = msgspec.convert(error["data"]["subluminal"], SubluminalErrorData)
    wait_until(lambda: ours.call_id in recorded(household), f"{ours.call_id} on record")
    return ours


def recorded(household):
    return {event["call"]["call_id"]: event for event in household.events("tool_call_start")}


def decisions(household):
    return [event["decision"]["action"] for event in household.events("tool_call_decision")]


@requirement("3.2.2:error-data")
@pytest.mark.parametrize("codes", ["pack", "mcp"])
def test_calls_that_a_hard_stop_interrupts_are_answered_with_their_contract(
    household, person, codes
):
    household.write_policy(policy())
    (household.home / "config.toml").write_text(f'[shim]\ncodes = "{codes}"\n')
    shim = household.start().ready()
    hanging = shim.ask("hang")
    wait_until(lambda: household.executed(), "the call to hang")
    person("kill", "run-1", "--hard", "--reason", "runaway")
    ours = contract_of(household, shim.answer(hanging))
    assert (ours.action, ours.reason_code, ours.tool_name) == ("BLOCK", "KILL_SWITCH", "hang")
    assert contract_of(household, shim.call()).action == "TERMINATE_RUN"
    person("revive", "run-1")
    assert contract_of(household, shim.call()).reason_code == "KILL_SWITCH", "its server is gone"
    shim.write(b'[{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"a"}}]\n')
    assert contract_of(household, shim.answer(70)).reason_code == "KILL_SWITCH"
    listed = shim.answer(shim.send("tools/list"))["error"]
    assert listed["code"] == -32603, "it is not a tool call"
    assert "was stopped" in listed["message"]
    shim.close()
    shim.wait()
    assert decisions(household) == ["ALLOW", "TERMINATE_RUN", "BLOCK", "BLOCK"]


def test_a_batch_in_front_of_a_real_server_is_refused_whole(household):
    household.write_policy(policy(deny("rm"), budget(9)))
    shim = household.start().ready()
    household.wait_event("policy_loaded")
    batch = [
        {"jsonrpc": "2.0", "id": 71, "method": "tools/call", "params": {"name": "echo"}},
        {"jsonrpc": "2.0", "id": 72, "method": "tools/call", "params": {"name": "rm"}},
        {"jsonrpc": "2.0", "id": 73, "method": "tools/list"},
    ]
    shim.write(json.dumps(batch).encode() + b"\n")
    answers = {number: shim.answer(number) for number in (71, 72, 73)}
    contracts = {number: contract_of(household, each) for number, each in answers.items()}
    assert contracts[71].reason_code == contracts[73].reason_code == "BATCH_REFUSED"
    assert contracts[73].call_id == contracts[72].call_id, "it names the refused call"
    assert answers[71]["error"]["message"].startswith("Blocked: not executed")
    leave(shim)
    assert household.executed() == []
    assert decisions(household) == ["BLOCK", "BLOCK"]
    assert household.run_end()["summary"]["calls_allowed"] == 0


def test_a_server_that_no_longer_reads_gets_no_call_and_the_client_an_answer(household):
    """It lives on and has closed its input; without an answer the client would wait until its timeout."""
    household.hurry()
    shim = household.start("deaf").ready()
    assert shim.code("deaf") == 0
    answer = shim.call()
    ours = contract_of(household, answer)
    assert (ours.action, ours.reason_code) == ("BLOCK", "SERVER_UNREACHABLE")
    assert answer["error"]["message"].startswith("Blocked: the server no longer reads")
    assert contract_of(household, shim.call()).reason_code == "SERVER_UNREACHABLE"
    shim.write(b'{"jsonrpc":"2.0","id":75,"method":"tools/call","method":"x"}\n')
    assert contract_of(household, shim.answer(75)).tool_name == "?"
    assert shim.answer(shim.send("tools/list"))["error"]["code"] == -32603
    shim.close()
    shim.wait()
    household.wait_empty()
    assert len(household.executed()) == 1
    ends = household.events("tool_call_end")
    by_call = {event["call"]["call_id"]: event for event in ends}
    assert len(by_call) == 4, "every call has an end"
    for call_id, event in by_call.items():
        if event["status"] == "OK":
            continue
        decided = [
            each["decision"]["action"]
            for each in household.events("tool_call_decision")
            if each["call"]["call_id"] == call_id
        ]
        assert event["status"] == "ERROR"
        assert decided == ["BLOCK"] or event["error"]["class"] == "transport"


def test_a_bug_that_keeps_a_call_from_being_recorded_is_answered_with_a_contract(household):
    household.write_policy(policy(deny("rm")))
    shim = household.start(sub=[sys.executable, FAULTY, "recording"]).ready()
    ours = contract_of(household, shim.call("echo", {"boom": 1}))
    assert (ours.action, ours.reason_code) == ("BLOCK", "EVALUATION_ERROR")
    leave(shim)
