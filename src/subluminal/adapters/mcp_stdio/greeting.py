"""Passes on the first message and its answer, before the modules for tool calls are loaded.

Clients send `initialize` as soon as they have started a server. It is neither decided nor recorded,
so the answer of a fast server need not wait for policies and journals (fast-start). Everything that
is not that simple is left to the loop, byte for byte.
"""

import os
import select
from typing import NamedTuple

from subluminal.adapters.mcp.messages import OTHER, classify
from subluminal.adapters.mcp_stdio.outlet import CHUNK_BYTES

_WAIT_MS = 10
"""Longest wait for the answer: a server that needs longer takes more time to start than we do."""
_SMALL_BYTES = 4_096
"""Bytes that an empty pipe accepts without blocking (PIPE_BUF)."""


class Greeting(NamedTuple):
    """What was exchanged, and the bytes that were read but not passed on."""

    asked: bool = False
    """whether something was sent to the server"""
    answered: bool = False
    """whether the server has written something"""
    from_client: bytes = b""
    """bytes of the client that the loop must take"""
    from_server: bytes = b""
    """bytes of the server that the loop must take"""
    passed_on: bytes = b""
    """the client's first line, if it was sent to the server"""


def greet(client_in: int, client_out: int, server_in: int, server_out: int) -> Greeting:
    """Passes on the client's first message and its answer, if both are available and simple."""
    data = _read(client_in, 0)
    end = data.find(b"\n") + 1
    line = data[:end]
    # Identity, not type: a `tools/list` is an Other too, but its answer must be recorded.
    if not 0 < end <= _SMALL_BYTES or classify(line) is not OTHER or not _write(server_in, line):
        return Greeting(from_client=data)
    answer = _read(server_out, _WAIT_MS)
    if answer.endswith(b"\n") and len(answer) <= _SMALL_BYTES:
        answer = answer[_write(client_out, answer) :]
    elif not answer:
        return Greeting(asked=True, from_client=data[end:], passed_on=line)
    return Greeting(True, True, data[end:], answer, line)


def _read(fd: int, wait_ms: int) -> bytes:
    """Returns the bytes that are available in time. The loop will notice the end by itself."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    try:
        return os.read(fd, CHUNK_BYTES) if poll.poll(wait_ms) else b""
    except OSError:
        return b""


def _write(fd: int, data: bytes) -> int:
    """Returns the number of bytes that were written; 0 if the reader is gone."""
    try:
        return os.write(fd, data)
    except OSError:
        return 0
