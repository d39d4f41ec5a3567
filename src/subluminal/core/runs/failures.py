"""What became of a server, as its shim tells the other processes of the run (shared-runs)."""

from typing import NamedTuple

import msgspec
from msgspec import UNSET

from subluminal.contracts.events import ServerFailure
from subluminal.contracts.templates import encode_json
from subluminal.counts import counted
from subluminal.state.layout import SERVER_FAILURE_BYTES

MAX_STDERR_BYTES = 240
"""Longest line of stderr in a record; with it, a usual failure fits into the run's state."""


class Served(NamedTuple):
    """What became of the server behind a process that leaves a run."""

    worked: bool = True
    """whether the server answered, and did not fail"""
    failure: ServerFailure | None = None
    reason: str = ""
    """why the run is FAILED, if the process says that it is"""


SERVED = Served()


def sentence(failure: ServerFailure, calls_open: int = 0) -> str:
    """Returns a failure as one sentence. `calls_open` is the number of calls without an answer."""
    told = failure.detail
    if calls_open:
        told += f" with {counted(calls_open, 'call')} in flight"
    return told if failure.stderr is UNSET else f"{told}: {failure.stderr}"


def packed(failure: ServerFailure) -> bytes:
    """Returns a failure as JSON that fits into the run's state, if need be without its stderr."""
    for each in (failure, msgspec.structs.replace(failure, stderr=UNSET)):
        text = encode_json(each)
        if len(text) <= SERVER_FAILURE_BYTES:
            return text
    # Names may be as long as a client's configuration allows.
    short = msgspec.structs.replace(
        failure, server_name=failure.server_name[:16], detail=failure.detail[:40], stderr=UNSET
    )
    return encode_json(short)


def unpacked(text: bytes) -> ServerFailure | None:
    """Returns the failure that `packed` wrote; None if there is none, or if it is unreadable."""
    try:
        return msgspec.json.decode(text, type=ServerFailure) if text else None
    except msgspec.MsgspecError:
        return None
