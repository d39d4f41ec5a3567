"""Classifies a client's message. Pure: takes bytes and returns a `Message`.

Messages are parsed strictly. A call that the server reads differently from Subluminal would bypass
it, so a message that can be read in two ways is `Ambiguous` (byte-transparent). A message that
neither makes nor cancels a tool call is `Other`, and passes.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from msgspec import UNSET, Struct

from subluminal.adapters.mcp.plain_call import read_plain_call
from subluminal.canonical import AmbiguousJSON, encode, parse

TOOLS_CALL = "tools/call"
TOOLS_LIST = "tools/list"
CANCELLED = "notifications/cancelled"
READS = ("resources/read", "prompts/get")
"""Requests for text that no tool gives."""

_MESSAGE_KEYS = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_PARAMS_KEYS = frozenset(("name", "arguments", "_meta", "requestState", "inputResponses", "task"))
_DECISIVE_KEYS = frozenset(("jsonrpc", "id", "method", "params", "name", "arguments"))
"""The keys that decide what a server executes."""

_JSON_SPACE = b" \t\r\n"


class Other(Struct, frozen=True):
    """A message that is forwarded without further inspection."""


class ListRequest(Other, frozen=True):
    """A `tools/list`: it is forwarded, and its answer is recorded."""

    id: Any
    cursor: str
    """the page that is requested; empty for the first"""


class ReadRequest(Other, frozen=True):
    """A request for a resource or a prompt: it is forwarded, and may lower the level of the run."""

    method: str
    meta: dict[str, Any]


class CallMessage(Struct, frozen=True):
    """A `tools/call`. `id` is UNSET in a notification, which a server may still execute."""

    id: Any
    name: str
    args: dict[str, Any]
    args_text: bytes
    """the canonical arguments, which are hashed and previewed"""
    meta: dict[str, Any]
    request_state: str | None
    """the state of the call that this one continues; empty if it had none; None for a new call"""


class Cancellation(Struct, frozen=True):
    """The client no longer waits for a request."""

    request_id: Any
    is_timeout: bool


class Batch(Struct, frozen=True):
    """Several messages in one JSON array (MCP 2025-03-26 only)."""

    calls: list[CallMessage]
    cancellations: list[Cancellation]
    ids: list[Any]
    """ids of the requests, which need an answer"""
    reads: list[ReadRequest] = []


class Ambiguous(Struct, frozen=True):
    """A message that another parser may read differently."""

    why: str
    ids: list[Any]
    """ids that need an answer, as far as they are known"""


Message = Other | CallMessage | Cancellation | Batch | Ambiguous

OTHER = Other()


def classify(line: bytes) -> Message:
    """Returns the meaning of one client message; space around it is ignored."""
    text = line.strip(_JSON_SPACE)
    plain = read_plain_call(text)
    if plain is not None:
        request_id, params, args_text = plain
        meta = params.meta if isinstance(params.meta, dict) else {}
        return CallMessage(request_id, params.name, params.arguments, args_text, meta, None)
    return _read_closely(text)


def _read_closely(text: bytes) -> Message:
    if not text:
        return OTHER
    try:
        document = parse(text)
    except AmbiguousJSON as error:
        # Without a bracket, no parser finds a message in it.
        if b"{" not in text and b"[" not in text:
            return OTHER
        return Ambiguous(str(error), _salvaged_ids(text))
    value = document.value
    if isinstance(value, dict):
        message = _one(value, document.plain)
    elif isinstance(value, list):
        message = _batch(value, document.plain)
    else:
        return OTHER
    if b"\r" in text:
        # JSON reads it as space; a reader with universal newlines, such as the Python SDK, reads
        # it as the end of the line.
        return Ambiguous("a carriage return inside the message may end its line", _ids_in(value))
    return message


def is_look_alike(key: str) -> bool:
    """Returns True if a key equals a decisive key but for upper and lower case.

    Some parsers, such as Go's, ignore the case of keys.
    """
    return key not in _DECISIVE_KEYS and key.casefold() in _DECISIVE_KEYS


def _odd_key(value: dict[str, Any], known: frozenset[str]) -> str | None:
    if value.keys() <= known:
        return None
    return next((key for key in value if is_look_alike(key)), None)


def _one(value: dict[str, Any], plain: bool) -> Message:
    method = value.get("method")
    odd = _odd_key(value, _MESSAGE_KEYS)
    if odd is not None:
        return Ambiguous(f"the key {odd!a} may be read as another", _ids_in(value))
    if method == TOOLS_CALL:
        return _call(value, plain)
    if "method" in value and not isinstance(method, str):
        # A server that looks methods up in a table may convert it to a string.
        return Ambiguous("the method is not a string", _ids_in(value))
    reader = _READERS.get(method)
    return OTHER if reader is None else reader(value)


def _call(value: dict[str, Any], plain: bool) -> CallMessage | Ambiguous:
    request_id = value.get("id", UNSET)
    ids = [] if request_id is UNSET else [request_id]
    params = value.get("params")
    if not isinstance(params, dict):
        return Ambiguous("a tools/call has no params object", ids)
    odd = _odd_key(params, _PARAMS_KEYS)
    if odd is not None:
        return Ambiguous(f"the key {odd!a} may be read as another", ids)
    name = params.get("name")
    args = params.get("arguments")
    if not isinstance(name, str):
        return Ambiguous("a tools/call does not name a tool", ids)
    if args is None:
        args = {}
    elif not isinstance(args, dict):
        return Ambiguous("the arguments of a tools/call are not an object", ids)
    meta = params.get("_meta")
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
        _request_state(params),
    )


def _request_state(params: dict[str, Any]) -> str | None:
    state = params.get("requestState")
    if isinstance(state, str):
        return state
    # A server may ask for input without a state; then `inputResponses` marks the next round.
    return "" if "inputResponses" in params else None


def _cancellation(value: dict[str, Any]) -> Message:
    params = value.get("params")
    if not isinstance(params, dict) or "requestId" not in params:
        return OTHER
    reason = params.get("reason")
    words = reason.lower() if isinstance(reason, str) else ""
    return Cancellation(params["requestId"], "timed out" in words or "timeout" in words)


def _list_request(value: dict[str, Any]) -> Other:
    request_id = value.get("id")
    if type(request_id) not in (int, str):
        return OTHER
    params = value.get("params")
    cursor = params.get("cursor") if isinstance(params, dict) else None
    return ListRequest(request_id, cursor if isinstance(cursor, str) else "")


def _read_request(value: dict[str, Any]) -> ReadRequest:
    params = value.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return ReadRequest(value["method"], meta if isinstance(meta, dict) else {})


_READERS: dict[Any, Callable[[dict[str, Any]], Message]] = {
    CANCELLED: _cancellation,
    TOOLS_LIST: _list_request,
    **dict.fromkeys(READS, _read_request),
}
"""Readers of the messages that are neither calls nor without meaning here, by method."""


def _batch(values: list[Any], plain: bool) -> Message:
    calls: list[CallMessage] = []
    cancellations: list[Cancellation] = []
    reads: list[ReadRequest] = []
    ids = _ids_in(values)
    for each in values:
        if not isinstance(each, dict):
            return Ambiguous("an element of the batch is not a message", ids)
        message = _one(each, plain)
        if isinstance(message, Ambiguous):
            return Ambiguous(message.why, ids)
        if isinstance(message, CallMessage):
            calls.append(message)
        elif isinstance(message, Cancellation):
            cancellations.append(message)
        elif isinstance(message, ReadRequest):
            reads.append(message)
    if calls or cancellations or reads:
        return Batch(calls, cancellations, ids, reads)
    return OTHER


def _ids_in(value: Any) -> list[Any]:
    """Returns the ids of the requests in a message or batch."""
    each = value if isinstance(value, list) else [value]
    return [one["id"] for one in each if isinstance(one, dict) and "id" in one and "method" in one]


def _salvaged_ids(text: bytes) -> list[Any]:
    """Returns the ids to answer if an unreadable message is refused.

    They are read with a lax parser: nothing but the answer depends on them.
    """
    import json  # the strict parser has loaded it to describe the problem

    try:
        ids = _ids_in(json.loads(text.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return []
    return [each for each in ids if type(each) in (int, str) and _is_writable(each)]


def _is_writable(request_id: Any) -> bool:
    try:
        encode(request_id)
    except AmbiguousJSON:
        return False
    return True


def id_key(request_id: Any) -> tuple[bool, Any]:
    """Returns the key under which request and answer match: 1 is 1.0, but not "1" or true."""
    if type(request_id) is int:
        return (False, request_id)
    if isinstance(request_id, bool | dict | list):
        return (True, encode(request_id))
    if isinstance(request_id, Decimal):
        # A server that reads numbers as doubles returns the nearest double.
        return (False, float(request_id))
    return (isinstance(request_id, str), request_id)
