"""The error a refused call gets (Pack 3.2), and what of it each client shows the model (D8)."""

import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
from tests.requirements import requirement

from subluminal.adapters.mcp_stdio.render import RefusedCall, Renderer, message_of
from subluminal.contracts.decision import Decision, Hint, PolicyRef
from subluminal.contracts.vocabulary import Action, Severity

ROOT = Path(__file__).parents[3]
CASES = json.loads((ROOT / "tests/cases/errors/messages.json").read_text())
CALL = RefusedCall(
    run_id="run-1",
    call_id="shim.1",
    server_name="git",
    tool_name="rm",
    args_hash="a" * 64,
    policy=PolicyRef(policy_id="p", policy_version="1", policy_hash="b" * 64),
)
REQUIRED = (
    "v action rule_id reason_code summary run_id call_id server_name tool_name args_hash policy"
)


def decision_of(case):
    return msgspec.convert(case["decision"], Decision)


@requirement("3.2.1:error-object", "3.2.1:codes", "3.2.2:error-data")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["note"])
def test_an_error_has_code_message_and_the_contract(case):
    line = Renderer().error(1, decision_of(case), CALL)
    assert b"\n" not in line
    said = json.loads(line)
    assert said["jsonrpc"] == "2.0"
    assert said["id"] == 1
    error = said["error"]
    assert error["code"] == case["code"]
    assert error["message"] == case["message"]
    ours = error["data"]["subluminal"]
    assert set(REQUIRED.split()) <= set(ours)
    assert (ours["v"], ours["action"]) == ("0.1.0", case["decision"]["action"])
    assert ours["rule_id"] == case["decision"]["rule_id"]
    assert ours["policy"] == {"policy_id": "p", "policy_version": "1", "policy_hash": "b" * 64}
    assert "code" not in ours
    schema = json.loads((ROOT / "schema/error_data.schema.json").read_text())
    jsonschema_rs.validator_for(schema).validate(error["data"])


@requirement("3.2.3:throttle", "3.2.4:hint")
def test_each_action_carries_what_the_pack_requires_of_it():
    ours = {
        case["decision"]["action"]: json.loads(Renderer().error(1, decision_of(case), CALL))[
            "error"
        ]["data"]["subluminal"]
        for case in CASES[:4] + CASES[5:6]
    }
    assert ours["THROTTLE"]["backoff_ms"] == 1500
    assert ours["THROTTLE"]["retry_advice"] == "retry after 1500 ms"
    assert ours["REJECT_WITH_HINT"]["hint"] == CASES[3]["decision"]["hint"]
    assert ours["TERMINATE_RUN"]["terminate"]["terminate_code"] == "LOOP"
    for action, members in ours.items():
        assert ("backoff_ms" in members) == (action == "THROTTLE")
        assert ("hint" in members) == (action == "REJECT_WITH_HINT")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["note"])
def test_codes_outside_the_range_of_mcp_repeat_the_packs(case):
    error = json.loads(Renderer("mcp").error(1, decision_of(case), CALL))["error"]
    assert error["code"] == case["code"] + 1_000
    assert error["data"]["subluminal"]["code"] == case["code"]
    assert error["message"] == case["message"]


@pytest.mark.parametrize("codes", ["pack", "mcp"])
def test_a_request_that_only_shares_a_refused_batch_has_a_plain_error(codes):
    error = json.loads(Renderer(codes).plain_error("x", "not executed"))["error"]
    assert error == {"code": -32081 if codes == "pack" else -31081, "message": "not executed"}


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "-7",
        '"a"',
        '""',
        '"\\u20ac\\n\\""',
        "null",
        "1.5",
        "0.1",
        "1" + "0" * 30,
    ],
)
def test_the_answer_has_the_requests_own_id(text):
    from subluminal.canonical import parse

    line = Renderer().error(parse(text.encode()).value, decision_of(CASES[0]), CALL)
    assert parse(line).value["id"] == parse(text.encode()).value
    if text.isdigit():
        assert b'"id":%b,' % text.encode() in line


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["note"])
def test_what_the_model_reads_in_each_client_holds_the_hint(case):
    """clients.md 1.6, 2.5 and 3: most pass on the message alone, Codex also the data."""
    error = json.loads(Renderer().error(1, decision_of(case), CALL))["error"]
    shown = {
        "claude": error["message"],
        "codex": "tool call error: tool call failed for `git/rm` Caused by: Mcp error: "
        f"{error['code']}: {error['message']}({json.dumps(error['data'])})",
        "copilot": f"MCP server 'git': McpError: MCP error {error['code']}: {error['message']}",
    }
    hint = case["decision"].get("hint") or {}
    for text in shown.values():
        assert case["decision"]["summary"].lower() in text.lower()
        assert hint.get("hint_text", "").lower() in text.lower()
        if hint.get("suggested_args"):
            assert json.dumps(hint["suggested_args"], separators=(",", ":")) in text
    assert shown["claude"].count(case["decision"]["summary"]) == 1


def test_suggested_arguments_that_are_long_are_left_to_the_data():
    hint = Hint(hint_text="shorter", suggested_args={"x": "y" * 3_000})
    decision = Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id="r",
        severity=Severity.WARN,
        reason_code="X",
        summary="too long",
        hint=hint,
    )
    assert len(message_of(decision)) < 200
    said = json.loads(Renderer().error(1, decision, CALL))
    assert said["error"]["data"]["subluminal"]["hint"]["suggested_args"] == {"x": "y" * 3_000}
