"""Runs a command at a terminal of its own, and types what a person would type there."""

import os
import pty
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.processes import wait_until


class Shown(NamedTuple):
    """How a command ended, and what the terminal showed."""

    code: int
    text: str


def typed(
    words: Sequence[str],
    prompt: str,
    answer: str,
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
) -> Shown:
    """Runs a command, and types the answer when the prompt is shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    has_answered = False

    def at_end() -> bool:
        nonlocal shown, has_answered
        try:
            piece = os.read(ours, 65_536)
        except OSError:  # the other side is closed
            return True
        shown += piece
        if not has_answered and prompt.encode() in shown:
            has_answered = True
            os.write(ours, f"{answer}\n".encode())
        return not piece

    try:
        wait_until(at_end, f"the end of {words}")
        code = process.wait(20)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return Shown(code, shown.decode())
