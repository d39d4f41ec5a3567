"""What a client's line means to us. Pure: bytes in, meaning out; the line itself is never changed.

Everything is parsed strictly, because a call that we read differently than the server does is a
way past us (D6). What is not a tool call, or the end of one, is `Other` and passes.
"""

from typing import Any

from msgspec import UNSET, Struct

from subluminal.canonical import AmbiguousJSON, encode, parse

TOOLS_CALL = "tools/call"
CANCELLED = "notifications/cancelled"

_JSON_SPACE = b" \t\r\n"


class Other(Struct, frozen=True):
    """A line that is forwarded and not looked at further."""


class CallMessage(Struct, frozen=True):
    """A `tools/call`. `id` is UNSET for a notification, which a server may still execute."""

    id: Any
    name: str
    args: dict[str, Any]
    args_text: bytes
    """the canonical arguments: what is hashed and previewed"""
    meta: dict[str, Any]
    request_state: str | None
    """set where the call continues an earlier one (D7)"""


class Cancellation(Struct, frozen=True):
    """The client no longer waits for a request."""

    request_id: Any
    is_timeout: bool


class Batch(Struct, frozen=True):
    """Several messages in one line (MCP 2025-03-26 only). `ids` are those that want an answer."""

    calls: list[CallMessage]
    cancellations: list[Cancellation]
    ids: list[Any]


class Ambiguous(Struct, frozen=True):
    """A line that another parser may read as something else."""

    why: str
    ids: list[Any]
    """whom to answer, as far as that can be told"""


Message = Other | CallMessage | Cancellation | Batch | Ambiguous

OTHER = Other()


def classify(line: bytes) -> Message:
    """Reads one client line, without its newline."""
    text = line.strip(_JSON_SPACE)
    if not text:
        return OTHER
    try:
        document = parse(text)
    except AmbiguousJSON as error:
        # Without a bracket nobody can read a message into it.
        if b"{" not in text and b"[" not in text:
            return OTHER
        return Ambiguous(str(error), [])
    value = document.value
    if isinstance(value, dict):
        return _one(value, document.plain)
    if isinstance(value, list):
        return _batch(value, document.plain)
    return OTHER


def _one(value: dict[str, Any], plain: bool) -> Message:
    method = value.get("method")
    if method == TOOLS_CALL:
        return _call(value, plain)
    if method == CANCELLED:
        return _cancellation(value)
    return OTHER


def _call(value: dict[str, Any], plain: bool) -> CallMessage | Ambiguous:
    request_id = value.get("id", UNSET)
    ids = [] if request_id is UNSET else [request_id]
    params = value.get("params")
    if not isinstance(params, dict):
        return Ambiguous("a tools/call has no params object", ids)
    name = params.get("name")
    args = params.get("arguments")
    if not isinstance(name, str):
        return Ambiguous("a tools/call names no tool", ids)
    if args is None:
        args = {}
    elif not isinstance(args, dict):
        return Ambiguous("the arguments of a tools/call are not an object", ids)
    meta = params.get("_meta")
    state = params.get("requestState")
    try:
        args_text = encode(args, plain=plain)
    except AmbiguousJSON as error:
        return Ambiguous(str(error), ids)
    return CallMessage(
        request_id,
        name,
        args,
        args_text,
        meta if isinstance(meta, dict) else {},
        state if isinstance(state, str) else None,
    )


def _cancellation(value: dict[str, Any]) -> Message:
    params = value.get("params")
    if not isinstance(params, dict) or "requestId" not in params:
        return OTHER
    reason = params.get("reason")
    words = reason.lower() if isinstance(reason, str) else ""
    return Cancellation(params["requestId"], "timed out" in words or "timeout" in words)


def _batch(values: list[Any], plain: bool) -> Message:
    calls: list[CallMessage] = []
    cancellations: list[Cancellation] = []
    ids = [each["id"] for each in values if isinstance(each, dict) and _wants_answer(each)]
    for each in values:
        if not isinstance(each, dict):
            return Ambiguous("a batch holds something that is no message", ids)
        message = _one(each, plain)
        if isinstance(message, Ambiguous):
            return Ambiguous(message.why, ids)
        if isinstance(message, CallMessage):
            calls.append(message)
        elif isinstance(message, Cancellation):
            cancellations.append(message)
    return Batch(calls, cancellations, ids) if calls or cancellations else OTHER


def _wants_answer(value: dict[str, Any]) -> bool:
    return "id" in value and "method" in value


def id_key(request_id: Any) -> tuple[bool, Any]:
    """A key under which request and answer meet: 1 is 1.0, never "1", never true."""
    if isinstance(request_id, bool | dict | list):
        return (True, encode(request_id))
    return (isinstance(request_id, str), request_id)
