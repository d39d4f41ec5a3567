"""Finds the replies in a server's message, after the message was forwarded to the client.

Theory of operation. Nearly all replies have one of two forms, which `replies_in` recognises by
their edges, without decoding the result. `_other` does the same with regular expressions for other
ids and for errors. Anything else is decoded. Of a message that was too large to keep, only head and
tail are searched for an id. A message that cannot be read has no replies.
"""

import re
import sys
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from subluminal.canonical import AmbiguousJSON, parse

_ID = rb'(-?[0-9]{1,15}|"[^"\\]{0,200}")'
# The forms that SDKs write: Python and Rust put the id first, TypeScript puts it last. Patterns are
# compiled when a message needs them: compiling them at the start would delay every shim.
_BEFORE_ID = b'{"jsonrpc":"2.0","id":'
_BEFORE_RESULT = b',"result":'
_BEFORE_ID_LAST = b'},"jsonrpc":"2.0","id":'
_MAX_DIGITS = 15
_MAX_RESULT_AT = len(_BEFORE_ID) + _MAX_DIGITS + len(_BEFORE_RESULT)
_ID_FIRST = rb'\{"jsonrpc":"2\.0","id":' + _ID + rb',"(result|error)":'
_ID_LAST = rb'\},"jsonrpc":"2\.0","id":' + _ID + rb"\}\r?$"
_RESULT_FIRST = b'{"result":{'

# The same with any spacing and order, for messages of which only head and tail were kept.
_MEMBER = rb'\s*"(?:jsonrpc|id)"\s*:\s*(?:-?[0-9]+|"[^"\\]*")\s*'
_HEAD = rb"\s*\{((?:" + _MEMBER + rb',)*)\s*"(result|error)"\s*:'
_TAIL = rb"((?:," + _MEMBER + rb")+)\}\s*$"
_ID_MEMBER = rb'"id"\s*:\s*' + _ID

_MAX_CODE_CHARS = 64
_INPUT_REQUIRED = b'"input_required"'
# SDKs end a result like this. The last `isError` of an object counts, and this one is certainly a
# member of the result itself, because the `}` after it closes the result.
_NO_ERROR_LAST = b',"isError":false}'


EDGE_BYTES = 1_024
"""Size of the head and of the tail that are kept of a large message: enough to find an id."""

_IS_ERROR_NAME = b'"isError"'
_IS_ERROR = _IS_ERROR_NAME + rb"\s*:\s*true"


def says_error(text: bytes, start: int = 0, end: int = sys.maxsize) -> bool:
    """Returns True if the text contains a true `isError` anywhere."""
    # Searched from the right, where results have it; CPython is also faster in that direction.
    if text.rfind(_IS_ERROR_NAME, start, end) < 0:
        return False
    return re.compile(_IS_ERROR).search(text, start, end) is not None


class ServerMessage(Struct, frozen=True):
    """One message of the server. `text` is None if the message was too large to keep."""

    size: int
    text: bytes | None
    head: bytes = b""
    tail: bytes = b""
    stream_hash: str | None = None
    says_error: bool = False
    """whether a message that was too large to keep contains a true `isError`"""


class Reply(Struct, frozen=True):
    """The answer to one of the client's requests."""

    id: Any
    size: int
    result: bytes | None
    """the result's text, or its beginning; None if the message was too large to keep"""
    is_error: bool = False
    error_code: Any = None
    error_message: str = ""
    stream_hash: str | None = None
    request_state: str | None = None
    """set if the server wants more input first, so that the call goes on (every-mcp-era)"""


class _Envelope(Struct):
    id: Raw | UnsetType = UNSET
    method: Any = UNSET
    result: Raw = Raw(b"")
    error: Raw = Raw(b"")


class _Error(Struct):
    code: Any = None
    message: Any = ""


class _Result(Struct):
    isError: Any = False  # noqa: N815 - the wire's name
    resultType: Any = None  # noqa: N815
    requestState: Any = None  # noqa: N815


_decode_id = msgspec.json.Decoder(int).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_batch = msgspec.json.Decoder(list[_Envelope]).decode
_decode_error = msgspec.json.Decoder(_Error).decode
_decode_result = msgspec.json.Decoder(_Result).decode
# What msgspec raises for an unreadable message.
_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def replies_in(line: ServerMessage, keep_bytes: int = sys.maxsize) -> list[Reply]:
    """Returns the replies in a message.

    At most `keep_bytes` of a result are kept, because many replies may wait to be recorded.
    """
    if line.text is None:
        return _large(line)
    text = line.text
    # Nearly all replies have one of these two forms. This is flat, and without a regex: after a
    # pause the regex engine is not in the CPU's caches, and costs more than all of this.
    if text.startswith(_BEFORE_ID):
        at = text.find(_BEFORE_RESULT, len(_BEFORE_ID), _MAX_RESULT_AT)
        id_text = text[len(_BEFORE_ID) : at]
        start, end = at + len(_BEFORE_RESULT), text.rfind(b"}")
    elif text.startswith(_RESULT_FIRST) and text.endswith(b"}"):
        at = text.rfind(_BEFORE_ID_LAST, -EDGE_BYTES)
        id_text = text[at + len(_BEFORE_ID_LAST) : -1]
        start, end = len(_RESULT_FIRST) - 1, at + 1
    else:
        return _cut(_other(line, text), keep_bytes)
    if (
        at < 0
        or len(id_text) > _MAX_DIGITS
        or not id_text.isdigit()
        or not _is_plain(text, start, end)
    ):
        return _cut(_other(line, text), keep_bytes)
    try:
        request_id = _decode_id(id_text)
    except _UNREADABLE:
        return []
    if end - start > keep_bytes:
        end = start + keep_bytes
    return [Reply(request_id, line.size, text[start:end])]


def _cut(replies: list[Reply], keep_bytes: int) -> list[Reply]:
    return [
        replace(each, result=each.result[:keep_bytes])
        if each.result is not None and len(each.result) > keep_bytes
        else each
        for each in replies
    ]


def _other(line: ServerMessage, text: bytes) -> list[Reply]:
    """Returns the replies in a message that is an error, or has another id or form."""
    found = re.match(_ID_FIRST, text)
    if found is not None:
        body = text[found.end() : text.rfind(b"}")]
        is_result = found.group(2) == b"result"
        return _reply(line, found.group(1), body, is_result)
    if text.startswith(_RESULT_FIRST):
        last = re.compile(_ID_LAST).search(text, max(0, len(text) - EDGE_BYTES))
        if last is not None:
            body = text[len(_RESULT_FIRST) - 1 : last.start() + 1]
            return _reply(line, last.group(1), body, True)
    return _decoded(line, text)


def _is_plain(text: bytes, start: int, end: int) -> bool:
    """Returns True if a result is neither an error nor a request for more input."""
    is_fine = text.endswith(_NO_ERROR_LAST, start, end) or not says_error(text, start, end)
    # Searched from the right, as in says_error.
    return is_fine and text.rfind(_INPUT_REQUIRED, start, end) < 0


def _decoded(line: ServerMessage, text: bytes) -> list[Reply]:
    first = text.lstrip()[:1]
    try:
        if first == b"{":
            envelopes = [_decode_envelope(text)]
        elif first == b"[":
            envelopes = _decode_batch(text)
        else:
            return []
    except _UNREADABLE:
        return []
    found: list[Reply] = []
    for each in envelopes:
        result, error = bytes(each.result), bytes(each.error)
        if isinstance(each.id, UnsetType) or each.method is not UNSET:
            continue
        if error not in (b"", b"null"):
            found += _reply(line, bytes(each.id), error, False)
        elif result:
            found += _reply(line, bytes(each.id), result, True)
    return found


def _reply(line: ServerMessage, id_text: bytes, body: bytes, is_result: bool) -> list[Reply]:
    try:
        # The request's id was read by the same parser, so the two can be compared.
        request_id = parse(id_text).value
    except AmbiguousJSON:
        return []
    if not is_result:
        error = _error_of(body)
        return [
            Reply(
                request_id,
                line.size,
                b"",
                is_error=True,
                error_code=_code_of(error.code),
                error_message=error.message if isinstance(error.message, str) else "",
            )
        ]
    if _is_plain(body, 0, len(body)):
        return [Reply(request_id, line.size, body)]
    result = _result_of(body)
    waits = result.resultType == "input_required"
    state = result.requestState if isinstance(result.requestState, str) else ""
    return [
        Reply(
            request_id,
            line.size,
            body,
            is_error=result.isError is True,
            error_message="the tool reported an error" if result.isError is True else "",
            request_state=state if waits else None,
        )
    ]


def _code_of(code: Any) -> int | str | None:
    if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 53:
        return code
    return code[:_MAX_CODE_CHARS] if isinstance(code, str) else None


def _error_of(body: bytes) -> _Error:
    try:
        return _decode_error(body)
    except _UNREADABLE:
        return _Error()


def _result_of(body: bytes) -> _Result:
    try:
        return _decode_result(body)
    except _UNREADABLE:
        return _Result()


def _large(line: ServerMessage) -> list[Reply]:
    """Returns the reply in a message of which only head and tail were kept."""
    head = re.match(_HEAD, line.head)
    if head is None:
        return []
    tail = re.search(_TAIL, line.tail)
    found = re.search(_ID_MEMBER, head.group(1)) or (tail and re.search(_ID_MEMBER, tail.group(1)))
    if found is None:
        return []
    is_error = line.says_error or head.group(2) == b"error"
    try:
        request_id = parse(found.group(1)).value
    except AmbiguousJSON:
        return []
    return [
        Reply(
            request_id,
            line.size,
            None,
            is_error=is_error,
            error_message="the answer was too large to inspect" if is_error else "",
            stream_hash=line.stream_hash,
        )
    ]
