"""Work in a process of its own, so that a shim never loads what only that work needs (fast-start).

The helper is a module of ours: `python -P -m MODULE ARGUMENT… < data`. It writes its answer to
stdout, or the problem as text with exit code 1. Nobody waits for it: `collect` takes the answer
when it is there.
"""

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from subluminal.config.env import without_tokens
from subluminal.system.files import unnamed_file

_PIPE_BYTES = 16_384
"""What a pipe holds on every system."""


class Helper(NamedTuple):
    """A running helper: its process, and the pipe that its answer comes from."""

    pid: int
    fd: int
    chunks: list[bytes]
    until: float
    """deadline by the monotonic clock, in seconds"""


class Answer(NamedTuple):
    """What a helper wrote, and its exit code; None if it was killed because it took too long."""

    data: bytes
    code: int | None


def start(module: str, arguments: Sequence[str], data: bytes, *, most_s: float) -> Helper:
    """Starts a helper that reads `data`. After `most_s` seconds it is killed. Raises OSError."""
    read_in = _file_of(data)
    out, their_out = os.pipe()
    # -P: the helper must not import a `yaml.py` from the repository that it starts in.
    argv = [sys.executable, "-P", "-m", module, *arguments]
    try:
        pid = os.posix_spawn(
            sys.executable,
            argv,
            without_tokens(os.environ),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read_in, 0),
                (os.POSIX_SPAWN_DUP2, their_out, 1),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        os.close(out)
        raise
    finally:
        os.close(read_in)
        os.close(their_out)
    os.set_blocking(out, False)
    return Helper(pid, out, [], time.monotonic() + most_s)


def collect(running: Helper) -> Answer | None:
    """Reads what the helper has written; returns its answer when it is done, else None."""
    while True:
        try:
            chunk = os.read(running.fd, 65536)
        except BlockingIOError:
            if time.monotonic() < running.until:
                return None
            end(running)
            return Answer(b"", None)
        if not chunk:
            break
        running.chunks.append(chunk)
    os.close(running.fd)
    code = os.waitstatus_to_exitcode(os.waitpid(running.pid, 0)[1])
    return Answer(b"".join(running.chunks), code)


def end(running: Helper) -> None:
    """Kills a helper whose answer is no longer needed."""
    os.close(running.fd)
    try:
        os.kill(running.pid, signal.SIGKILL)
        os.waitpid(running.pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return  # `sub run` collects every child that ends


def _file_of(data: bytes) -> int:
    """Returns something to read `data` from, without a writer.

    Small data goes into a pipe, so that a token is on no disk; a file holds any amount.
    """
    if len(data) <= _PIPE_BYTES:
        their_in, own = os.pipe()
        os.write(own, data)
        os.close(own)
        return their_in
    fd = unnamed_file()
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
