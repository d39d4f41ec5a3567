"""The processes of one test, found by a token that all of them inherit in their environment."""

import os
import select
import time
import uuid
from collections.abc import Callable
from typing import Any

from subluminal.supervise import processes

WITHIN_S = 20.0
"""Bound of every wait, in seconds; generous, because the machine may be busy."""


def wait_until(condition: Callable[[], Any], what: str, within_s: float = WITHIN_S) -> Any:
    """Returns the condition's value as soon as it is true. Fails at the bound."""
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        select.select([], [], [], 0.003)
    return value


class Marked:
    """Gives the processes of a test a token, and tells which of them live."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex

    def alive(self) -> list[int]:
        """Returns the pids of all living processes of the test, wardens included."""
        mark = f"SUB_TEST_TOKEN={self.token}".encode()
        return [
            pid
            for pid in processes.pids()
            if pid != os.getpid() and mark in processes.read(pid, "environ").split(b"\0")
        ]

    def wait_empty(self, within_s: float = WITHIN_S) -> float:
        """Waits until no process is left. Returns the seconds it took."""
        begin = time.monotonic()
        wait_until(lambda: not self.alive(), f"nothing left of {self.describe()}", within_s)
        return time.monotonic() - begin

    def describe(self) -> list[tuple[int, bytes]]:
        """Returns what lives, for a failed test's message."""
        return [(pid, processes.read(pid, "cmdline")[-80:]) for pid in self.alive()]
