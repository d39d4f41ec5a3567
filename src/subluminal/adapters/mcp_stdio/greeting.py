"""The first exchange, before what only tool calls need is loaded (fast-start).

Clients send `initialize` as soon as they have started a server. It is neither decided nor recorded,
so an instant server's answer need not wait for policies and journals. Whatever is not that simple
is left to the loop, byte for byte.
"""

import os
import select
from typing import NamedTuple

from subluminal.adapters.mcp.messages import OTHER, classify
from subluminal.adapters.mcp_stdio.outlet import CHUNK_BYTES

_WAIT_MS = 10
"""A server that answers at once has answered by then; any other boots for longer than we load."""
_SMALL_BYTES = 4_096
"""A pipe that nothing was written to takes this much without blocking (PIPE_BUF)."""


class Greeting(NamedTuple):
    """What was exchanged, and what was read and is for the loop to take."""

    asked: bool = False
    """whether the server was sent something"""
    answered: bool = False
    """whether the server said something"""
    from_client: bytes = b""
    from_server: bytes = b""


def greet(client_in: int, client_out: int, server_in: int, server_out: int) -> Greeting:
    """Passes on the client's first message and its answer, if both are there and simple."""
    data = _read(client_in, 0)
    end = data.find(b"\n") + 1
    line = data[:end]
    # The very object: a `tools/list` is an Other too, but its answer is to be looked at.
    if not 0 < end <= _SMALL_BYTES or classify(line) is not OTHER or not _write(server_in, line):
        return Greeting(from_client=data)
    answer = _read(server_out, _WAIT_MS)
    if answer.endswith(b"\n") and len(answer) <= _SMALL_BYTES:
        answer = answer[_write(client_out, answer) :]
    elif not answer:
        return Greeting(asked=True, from_client=data[end:])
    return Greeting(True, True, data[end:], answer)


def _read(fd: int, wait_ms: int) -> bytes:
    """What is there by then; nothing also at the end, which the loop will see again."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    try:
        return os.read(fd, CHUNK_BYTES) if poll.poll(wait_ms) else b""
    except OSError:
        return b""


def _write(fd: int, data: bytes) -> int:
    """How much was taken; nothing where nobody reads."""
    try:
        return os.write(fd, data)
    except OSError:
        return 0
