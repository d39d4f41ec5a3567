"""Contract C: decisions, hints, errors, codes; and the closed vocabularies (Pack 3, 7)."""

import json

import msgspec
import pytest
from tests.contracts import samples
from tests.requirements import requirement

from subluminal.config import env
from subluminal.contracts.bindings import SecretBinding, ServerBindings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.decision import Decision, ErrorData, Hint
from subluminal.contracts.vocabulary import (
    ACTION_STRICTNESS,
    Action,
    ErrorCode,
    McpErrorCode,
    SecretSource,
    Severity,
    Transport,
)

ERROR = {
    "v": "0.1.0",
    "action": "BLOCK",
    "rule_id": None,
    "reason_code": "DENYLIST_MATCH",
    "summary": "no",
    "run_id": "r",
    "call_id": "c",
    "server_name": "git",
    "tool_name": "push",
    "args_hash": samples.HASH,
    "policy": samples.POLICY,
}


@requirement("3.1:decision-fields")
def test_a_decision_needs_its_five_fields() -> None:
    required = Decision.__struct_fields__[:5]
    assert required == ("action", "rule_id", "severity", "reason_code", "summary")
    decision = Decision(
        action=Action.ALLOW, rule_id=None, severity=Severity.INFO, reason_code="OK", summary="ok"
    )
    assert (decision.backoff_ms, decision.hint, decision.terminate) == (None, None, None)
    with pytest.raises(TypeError, match="summary"):
        Decision(action=Action.ALLOW, rule_id=None, severity=Severity.INFO, reason_code="OK")


@requirement("3.1:decision-fields", "7.4:closed-vocabulary")
def test_the_actions_are_the_packs_and_ordered_by_strictness() -> None:
    assert {action.value for action in Action} == {
        "ALLOW",
        "BLOCK",
        "THROTTLE",
        "REJECT_WITH_HINT",
        "TERMINATE_RUN",
    }
    strictest_first = sorted(Action, key=ACTION_STRICTNESS.__getitem__, reverse=True)
    assert strictest_first == ["TERMINATE_RUN", "BLOCK", "REJECT_WITH_HINT", "THROTTLE", "ALLOW"]


@requirement("3.2.1:codes")
def test_the_reserved_codes_are_the_packs() -> None:
    assert {code.name: code.value for code in ErrorCode} == {
        "POLICY_BLOCKED": -32081,
        "POLICY_THROTTLED": -32082,
        "REJECT_WITH_HINT": -32083,
        "RUN_TERMINATED": -32084,
    }
    assert [code.name for code in McpErrorCode] == [code.name for code in ErrorCode]


@requirement("3.2.2:error-data")
@pytest.mark.parametrize("field", ERROR)
def test_error_data_needs_every_field(field: str) -> None:
    whole = {"subluminal": ERROR}
    assert json.loads(msgspec.json.encode(msgspec.convert(whole, ErrorData))) == whole
    broken = {"subluminal": {key: ERROR[key] for key in ERROR if key != field}}
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert(broken, ErrorData)


@requirement("3.2.4:hint")
def test_a_hint_always_writes_its_four_fields() -> None:
    written = json.loads(msgspec.json.encode(Hint(hint_text="try less")))
    assert written == {
        "hint_text": "try less",
        "suggested_args": None,
        "retry_advice": None,
        "hint_kind": "OTHER",
    }


@requirement("3.2.4:hint")
def test_suggested_args_are_an_object() -> None:
    with pytest.raises(msgspec.ValidationError, match="suggested_args"):
        msgspec.convert({**samples.HINT, "suggested_args": [1]}, Hint)


@requirement("4.1:binding-fields")
def test_a_binding_redacts_by_default() -> None:
    binding = {"inject_as": "TOKEN", "secret_ref": "token", "source": "env"}
    server = {"server_name": "git", "secret_bindings": [binding]}
    assert msgspec.convert(server, ServerBindings).secret_bindings[0].redact is True
    assert {source.value for source in SecretSource} == {"env", "keychain", "file"}
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({**binding, "value": "hunter2"}, SecretBinding)


@requirement("5:variables")
def test_the_identity_variables_are_the_packs() -> None:
    names = [variable.name for variable in env.IDENTITY_VARIABLES]
    assert names[:5] == ["SUB_RUN_ID", "SUB_AGENT_ID", "SUB_ENV", "SUB_CLIENT", "SUB_PRINCIPAL"]


@requirement("7.1:tool-call")
def test_a_tool_call_carries_what_the_core_needs() -> None:
    call = ToolCall(
        server_name="git",
        tool_name="push",
        args={"branch": "fix"},
        args_hash=samples.HASH,
        bytes_in=10,
        transport=Transport.MCP_STDIO,
    )
    assert call.context == {}
    with pytest.raises(AttributeError, match="immutable"):
        call.tool_name = "pull"  # type: ignore[misc]


@requirement("7.1:tool-call", "7.4:closed-vocabulary")
def test_the_transports_are_the_packs() -> None:
    assert {transport.value for transport in Transport} >= {
        "mcp_stdio",
        "mcp_http",
        "messages_api",
        "http",
        "unknown",
    }
