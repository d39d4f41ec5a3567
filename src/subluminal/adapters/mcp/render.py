"""Writes refusals as JSON-RPC errors (Pack 3.2).

`error.message` is for the model (`core.refusal_text`); `error.data` carries the contract
(visible-hints).
"""

from typing import Any

import msgspec
from msgspec import UNSET

from subluminal.canonical import encode
from subluminal.contracts import PACK_VERSION
from subluminal.contracts.decision import Decision, ErrorData, PolicyRef, SubluminalErrorData
from subluminal.contracts.templates import encode_json
from subluminal.contracts.vocabulary import Action, ErrorCode, McpErrorCode
from subluminal.core.refusal_text import message_of

_CODES = {
    Action.BLOCK: "POLICY_BLOCKED",
    Action.THROTTLE: "POLICY_THROTTLED",
    Action.REJECT_WITH_HINT: "REJECT_WITH_HINT",
    Action.TERMINATE_RUN: "RUN_TERMINATED",
}
INTERNAL_ERROR = -32603
"""JSON-RPC's own code, for a request that is not a tool call. The Pack's codes are for tool calls,
and come with `error.data.subluminal`."""


class RefusedCall(msgspec.Struct, frozen=True):
    """The facts about a refused call that its error contains."""

    run_id: str
    call_id: str
    server_name: str
    tool_name: str
    args_hash: str
    policy: PolicyRef
    args: dict[str, Any] | None = None
    """None if they were too large to inspect"""


class Renderer:
    """Writes refusals. `codes` is `shim.codes` of the settings."""

    def __init__(self, codes: str = "pack") -> None:
        self._uses_pack_codes = codes == "pack"

    def error(self, request_id: Any, decision: Decision, call: RefusedCall) -> bytes:
        """Returns one JSON-RPC error object, without a newline."""
        name = _CODES[decision.action]
        pack_code = ErrorCode[name]
        code = pack_code if self._uses_pack_codes else McpErrorCode[name]
        data = ErrorData(
            subluminal=SubluminalErrorData(
                v=PACK_VERSION,
                action=decision.action,
                rule_id=decision.rule_id,
                reason_code=decision.reason_code,
                summary=decision.summary,
                run_id=call.run_id,
                call_id=call.call_id,
                server_name=call.server_name,
                tool_name=call.tool_name,
                args_hash=call.args_hash,
                policy=call.policy,
                backoff_ms=UNSET if decision.backoff_ms is None else decision.backoff_ms,
                retry_advice=_throttle_advice(decision),
                hint=UNSET if decision.hint is None else decision.hint,
                terminate=UNSET if decision.terminate is None else decision.terminate,
                defer=UNSET if decision.defer is None else decision.defer,
                constraints=UNSET if decision.constraints is None else decision.constraints,
                code=UNSET if self._uses_pack_codes else int(pack_code),
            )
        )
        return error_message(request_id, int(code), message_of(decision, call.args), data)


def error_message(request_id: Any, code: int, message: str, data: Any = None) -> bytes:
    """Returns a JSON-RPC error with the request's own id."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (
        _id_text(request_id),
        encode_json(error),
    )


def _id_text(request_id: Any) -> bytes:
    if isinstance(request_id, bytes):
        return request_id  # already JSON text
    # Canonical JSON would write a large integer with an exponent, and so lose digits.
    if isinstance(request_id, int) and not isinstance(request_id, bool):
        return b"%d" % request_id
    return encode(request_id)


class _Asked(msgspec.Struct, frozen=True):
    id: Any = UNSET
    method: Any = UNSET


_decode_asked = msgspec.json.Decoder(list[_Asked] | _Asked).decode


def undelivered_answers(message: bytes, why: str) -> list[bytes]:
    """Returns the errors to a message that does not reach its server; `why` is the reason.

    Tool calls are refused elsewhere. Notifications and answers get no error.
    """
    try:
        found = _decode_asked(message)
    except msgspec.MsgspecError:
        return []
    asked = found if isinstance(found, list) else [found]
    return [
        error_message(each.id, INTERNAL_ERROR, why)
        for each in asked
        if each.id is not UNSET and each.method is not UNSET
    ]


def _throttle_advice(decision: Decision) -> Any:
    if decision.action is not Action.THROTTLE:
        return UNSET
    return f"retry after {decision.backoff_ms} ms"
