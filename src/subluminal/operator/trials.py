"""Starts another program for a moment, bounded in time, and leaves no process behind."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

_MAX_BYTES = 8 << 20
_LAST_S = 2.0


class Trial(NamedTuple):
    """What a program did."""

    code: int | None
    """None if it did not end by itself in time"""
    stdout: bytes


def run_for_a_moment(
    words: Sequence[str],
    stdin: bytes,
    timeout_s: float,
    *,
    environ: Mapping[str, str],
    cwd: str,
    is_enough: Callable[[bytes], bool] | None = None,
    with_stderr: bool = False,
) -> Trial:
    """Runs a program and returns what it wrote.

    Its stdin is closed when all was written, or with `is_enough` when that says that what it has
    written is enough. `with_stderr` adds what it writes to stderr. Raises OSError if it cannot be
    started.
    """
    deadline = time.monotonic() + timeout_s
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if with_stderr else subprocess.DEVNULL,
        env=dict(environ),
        cwd=cwd,
        start_new_session=True,
    ) as process:
        try:
            written = _conversation(process, stdin, deadline, is_enough)
            code = _wait(process, deadline if is_enough is None else time.monotonic() + _LAST_S)
        finally:
            _end(process)
    return Trial(code, written)


def _conversation(
    process: "subprocess.Popen[bytes]",
    stdin: bytes,
    deadline: float,
    is_enough: Callable[[bytes], bool] | None,
) -> bytes:
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    with suppress(BrokenPipeError):  # it may end without reading
        process.stdin.write(stdin)
        process.stdin.flush()
        if is_enough is None:
            process.stdin.close()
    written = b""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while len(written) < _MAX_BYTES and not (is_enough and is_enough(written)):
            if not ready.select(max(0.0, deadline - time.monotonic())):
                break
            data = os.read(process.stdout.fileno(), 65_536)
            if not data:
                break
            written += data
    with suppress(BrokenPipeError):
        process.stdin.close()
    return written


def _wait(process: "subprocess.Popen[bytes]", deadline: float) -> int | None:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kills what is left of the program's group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
