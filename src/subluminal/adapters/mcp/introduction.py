"""Reads how a client introduces itself: `clientInfo` of `initialize`, or of a stateless request.

Nothing is decided by it but the client's name, so a message that cannot be read names no client.
"""

from typing import Any

import msgspec

_KEY = "clientInfo"
_META_KEY = "io.modelcontextprotocol/clientInfo"
_MAX_CHARS = 256


class _Hello(msgspec.Struct):
    params: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Hello).decode


def introduced_as(line: bytes) -> str | None:
    """Returns the name in a message's `clientInfo`; None if the message has none."""
    if _KEY.encode() not in line:
        return None
    try:
        params = _decode(line).params
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    meta = params.get("_meta")
    info = params.get(_KEY) or (meta.get(_META_KEY) if isinstance(meta, dict) else None)
    name = info.get("name") if isinstance(info, dict) else None
    return name[:_MAX_CHARS] if isinstance(name, str) and name else None
