"""What a client is told whose server a person has stopped (`sub kill --hard`): there is none."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from subluminal.adapters.mcp.render import error_line
from subluminal.contracts.vocabulary import ErrorCode


class _Asked(Struct, frozen=True):
    id: Any = UNSET
    method: Any = UNSET


_decode = msgspec.json.Decoder(list[_Asked] | _Asked).decode


def answers(line: bytes, why: str) -> bytes:
    """Refuses what a line asks that is no tool call; notifications and answers get nothing."""
    try:
        found = _decode(line)
    except msgspec.MsgspecError:
        return b""
    asked = found if isinstance(found, list) else [found]
    return b"".join(
        error_line(each.id, int(ErrorCode.RUN_TERMINATED), why) + b"\n"
        for each in asked
        if each.id is not UNSET and each.method is not UNSET
    )
