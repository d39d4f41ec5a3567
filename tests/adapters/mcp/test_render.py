"""The error of a refused call (Pack 3.2), and what each client shows the model of it (visible-hints)."""

import json
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
from msgspec.structs import replace
from tests.requirements import requirement

from subluminal.adapters.mcp.render import RefusedCall, Renderer, message_of
from subluminal.canonical import args_hash
from subluminal.contracts.decision import Decision, Hint, PolicyRef
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer, Severity
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.loading import parse_bundle

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


HINTS = ROOT / "tests/cases/hints"
WRAPPED = {
    "claude": "{message}",
    "codex": "Wall time: N seconds\nOutput:tool call error: tool call failed for `fs/{tool}`\n\n"
    "Caused by:\n    Mcp error: {code}: {message}({data})",
}
"""What a client adds to an error before its model reads it."""


def hint_decisions():
    """What the policy of the cases says of their calls, in order."""
    snapshot = compile_bundle(parse_bundle((HINTS / "policy.yaml").read_bytes(), "p").bundle)
    engine, counters = Engine([(Layer.USER, snapshot)], Identity()), MemoryCounters()
    for call in json.loads((HINTS / "calls.json").read_text()):
        asked = Call("fs", call["tool"], call["args"], args_hash(call["args"]))
        found = engine.evaluate(asked, counters, wall_ms=0, mono_ms=0)
        counters.write(found.updates)
        hint = found.decision.hint
        if call["shows"] == "approval":  # core adds which one it is
            hint = replace(hint, retry_advice=f"{hint.retry_advice}; this is approval ID")
            found.decision = replace(found.decision, hint=hint)
        yield call, found


@requirement("3.2.4:hint")
@pytest.mark.parametrize("client", list(WRAPPED))
def test_what_the_model_reads_is_what_the_real_clients_showed_it(client):
    """The texts in tests/cases/hints come from the clients themselves: tests/e2e/test_hints.py."""
    shown = ""
    for call, found in hint_decisions():
        if call["shows"] is None:
            assert found.forwarded
            continue
        refused = RefusedCall(
            run_id="RUN",
            call_id="CALL",
            server_name="fs",
            tool_name=call["tool"],
            args_hash="HASH",
            policy=replace(found.policy, policy_hash="HASH"),
            args=call["args"],
        )
        line = Renderer().error(1, found.decision, refused)
        error = json.loads(line)["error"]
        data = line.partition(b'"data":')[2].removesuffix(b"}}").decode()
        text = WRAPPED[client].format(tool=call["tool"], **{**error, "data": data})
        shown += f"== {call['shows']}\n{text}\n"
        hint = found.decision.hint
        assert hint.hint_kind == {"approval": "SAFETY"}.get(call["shows"], call["shows"])
        assert hint.hint_text
        assert hint.retry_advice
    assert shown == (HINTS / f"{client}.txt").read_text()


def test_a_refusal_for_want_of_approval_does_not_invite_the_agent_to_approve():
    """The agent has a shell, and is not the person who may approve (local-is-not-trusted)."""
    (told,) = [
        message_of(d.decision) for call, d in hint_decisions() if call["shows"] == "approval"
    ]
    assert "A person has been asked" in told
    assert "retry the same call with the same arguments once it is approved" in told
    assert "sub " not in told


def rejected(suggested, summary="too long"):
    return Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id="r",
        severity=Severity.WARN,
        reason_code="X",
        summary=summary,
        hint=Hint(hint_text="shorter", suggested_args=suggested),
    )


LONG = "y" * 3_000


@pytest.mark.parametrize(
    ("args", "suggested", "told"),
    [
        ({"x": LONG, "n": 9}, {"x": LONG, "n": 1}, 'your own with {"n":1}'),
        ({"x": LONG, "f": 1, "g": 2}, {"x": LONG}, 'your own without "f", "g"'),
        ({"x": LONG, "f": 1}, {"x": LONG, "n": [1]}, 'your own with {"n":[1]} and without "f"'),
        ({"k": "s3cret"}, {}, "{}"),
    ],
)
def test_of_long_arguments_the_model_reads_what_to_change(args, suggested, told):
    assert message_of(rejected(suggested), args) == (
        f"Rejected by policy (rule r): too long. Shorter. Suggested arguments: {told}."
    )


@pytest.mark.parametrize("args", [None, {"x": "z"}, {"x": LONG}])
def test_what_is_too_long_to_be_read_is_left_to_the_data(args):
    said = message_of(rejected({"x": LONG}), args)
    assert said == "Rejected by policy (rule r): too long. Shorter."
    line = Renderer().error(1, rejected({"x": LONG}), CALL)
    assert json.loads(line)["error"]["data"]["subluminal"]["hint"]["suggested_args"] == {"x": LONG}


def test_of_a_partial_hint_the_model_reads_that_only_these_arguments_change():
    hint = Hint(hint_text="fewer", suggested_args={"n": 9}, partial=True)
    refused = msgspec.structs.replace(rejected({}), hint=hint)

    assert 'Suggested arguments: your own with {"n":9}.' in message_of(refused, {"k": 1, "n": 50})
