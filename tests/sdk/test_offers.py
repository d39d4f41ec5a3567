"""A shim behind a guarded MCP call, and what a program says of its calls: ids, targets, labels."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import budget, rule
from tests.adapters.records import calls_of
from tests.adapters.wire import Wire, upstream
from tests.requirements import requirement
from tests.sdk.conftest import Office

from subluminal import Blocked

DENY = {"action": "BLOCK", "reason_code": "NO", "message": "no"}


def message(number: int, arguments: dict[str, Any], meta: dict[str, str]) -> bytes:
    answer = {"answer": {"result": {"content": [{"type": "text", "text": "from the server"}]}}}
    params = {"name": "read", "arguments": arguments, "_meta": {**meta, **answer}}
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(body).encode() + b"\n"


@requirement("sdk:handover")
@pytest.mark.parametrize("client_call_id", [None, "call_7"], ids=["own id", "framework's id"])
def test_a_shim_behind_a_guarded_call_decides_and_counts_nothing(
    office: Office, tmp_path: Path, client_call_id: str | None
) -> None:
    guard = office.guard(budget(2))
    wire = Wire(upstream("echoer"), home=office.home, place=tmp_path, env=guard.environ())
    for number in range(2):
        args = {"n": number}
        given = None if client_call_id is None else f"{client_call_id}.{number}"
        call = guard.call("read", args, server="probe", provider="mcp", client_call_id=given)
        with call:
            wire.send(message(number, args, call.offer()))
            call.result = wire.line()["result"]
    with pytest.raises(Blocked), guard.call("read", {}, server="probe"):
        pass
    wire.finish()
    wire.abandon()
    calls = calls_of(office.events())
    assert [call[1]["decision"]["action"] for call in calls] == ["ALLOW", "ALLOW", "BLOCK"]
    for begun, _, end in calls[:2]:
        assert begun["call"]["transport"] == "in_process"
        assert begun["source"]["shim_id"] != end["source"]["shim_id"], "the shim saw the end"
        assert "from the server" in end["preview"]["result_preview"]
        if client_call_id is not None:
            assert begun["call"]["client_call_id"].startswith(client_call_id)


@requirement("sdk:handover")
def test_a_copied_id_lets_no_second_call_pass_undecided(office: Office, tmp_path: Path) -> None:
    """The id is in a message that others may see: it serves once, and for its own call only."""
    guard = office.guard(budget(3))
    wire = Wire(upstream("echoer"), home=office.home, place=tmp_path, env=guard.environ())
    answers = []
    with guard.call("read", {"n": 0}, server="probe", provider="mcp") as call:
        meta = call.offer()
        for number, arguments in enumerate([{"n": 1}, {"n": 0}, {"n": 0}, {"n": 0}]):
            wire.send(message(number, arguments, meta))
            answers.append("result" in wire.line())
    wire.finish()
    wire.abandon()
    calls = calls_of(office.events())
    assert answers == [True, True, True, False]
    assert [each[1]["decision"]["action"] for each in calls] == [*["ALLOW"] * 3, "BLOCK"]
    assert len({each[0]["call"]["call_id"] for each in calls}) == 4


@requirement("sdk:handover")
def test_an_offer_that_nobody_takes_is_withdrawn(office: Office) -> None:
    guard = office.guard()
    with guard.call("read", {}, server="probe") as call:
        assert call.offer() == {"subluminal/toolUseId": call.call_id}
        call.result = "here"
    assert office.ends() == [("OK", '"here"')]
    assert list((office.home / "state" / "handovers" / "offers").iterdir()) == []


@requirement("sdk:targets")
def test_targets_say_which_parameter_is_what(office: Office, tmp_path: Path) -> None:
    etc = {"path": {"glob": ["/etc/*"]}, "access": ["write"]}
    guard = office.guard(
        rule("keep", "deny", DENY, targets=etc),
        rule("unread", "deny", DENY, targets={"opaque": True}),
    )

    @guard.tool(targets={"path": "file", "access": "write"})
    def save(file: str, text: str) -> str:
        return "saved"

    @guard.tool(targets=lambda args: {"path": [f"/etc/{args['name']}"], "access": "write"})
    def configure(name: str) -> str:
        return "configured"

    @guard.tool(targets={"path": "file", "access": "read"})
    def read(file: Path) -> str:
        return "read"

    @guard.tool(targets=lambda args: {"path": args["none"]})
    def wrong(name: str) -> str:
        return "ran"

    assert save(str(tmp_path), "") == "saved"
    assert read(Path("/etc/hosts")) == "read"
    refused: dict[str, Callable[[], str]] = {
        "keep": lambda: save("/etc/passwd", ""),
        "keep ": lambda: configure("hosts"),
        "unread": lambda: wrong("x"),
    }
    for rule_id, call in refused.items():
        with pytest.raises(Blocked) as caught:
            call()
        assert caught.value.rule_id == rule_id.strip()


def test_targets_that_cannot_be_meant_are_an_error(office: Office) -> None:
    guard = office.guard()
    wrong: list[Any] = [{"path": "fil"}, {"pth": "file"}, {}, {"access": "read"}]
    for targets in wrong:
        with pytest.raises(ValueError, match="targets"):
            guard.tool(targets=targets)(lambda file: file)


def test_labels_context_and_provider_are_for_rules(office: Office) -> None:
    guard = office.guard(
        rule("pii", "deny", DENY, data_labels_any=["PII"]),
        rule("night", "deny", DENY, context={"key_equals": {"shift": "night"}}),
        rule("chain", "deny", DENY, tool_provider=["langchain"]),
    )

    @guard.tool(labels=["PII"])
    def mail() -> None: ...

    @guard.tool(provider="langchain")
    def search() -> None: ...

    for refused in (mail, search):
        with pytest.raises(Blocked):
            refused()
    assert guard.check("t", {}, context={"shift": "night"}).rule_id == "night"
    assert guard.check("t", {}, context={"shift": "day"}, labels=["PUBLIC"]).action == "ALLOW"
