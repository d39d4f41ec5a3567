"""Reads a `tools/call` as nearly every client writes it: one typed decode, and a check.

The check, explained in `canonical.parsing`, proves that the message is plain: what was read is
written again and must be exactly as long as the message. So no key occurs twice, nothing is
escaped, and there is no extra space. Messages that fail the check are not refused:
`messages.classify` reads them key by key.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.json import Encoder

from subluminal.canonical import NOT_PLAIN, encode, may_be_plain, plain_decoder

_TOOLS_CALL = b'"method":"tools/call"'
_AROUND_BYTES = len(
    b'{"jsonrpc":"2.0","id":,"method":"tools/call","params":{"name":,"arguments":}}'
)
_META_BYTES = len(b',"_meta":')


class PlainParams(Struct, forbid_unknown_fields=True, rename={"meta": "_meta"}):
    """The params of a call. Rounds and tasks are rare, and are not read here."""

    name: str
    arguments: dict[str, Any]
    meta: dict[str, Any] | UnsetType = UNSET


class _PlainCall(Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: PlainParams


_decode = plain_decoder(_PlainCall)
_written = Encoder().encode


def read_plain_call(text: bytes) -> tuple[int | str, PlainParams, bytes] | None:
    """Returns a call's id, its params and its canonical arguments; None if it is not plain."""
    if _TOOLS_CALL not in text or not may_be_plain(text):
        return None
    try:
        call = _decode(text)
    except NOT_PLAIN:
        return None
    params = call.params
    args_text = encode(params.arguments, plain=True)
    size = _AROUND_BYTES + len(_written(call.id)) + len(_written(params.name))
    if params.meta is not UNSET:
        size += _META_BYTES + len(_written(params.meta))
    if size + len(args_text) != len(text):
        return None
    return call.id, params, args_text
