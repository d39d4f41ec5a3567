"""The processes of one test, found by a token that all of them inherit in their environment."""

import os
import select
import signal
import time
import uuid
from collections.abc import Callable
from typing import Any

from subluminal.system.proc import descendants, process

__all__ = [
    "WITHIN_S",
    "Marked",
    "deputy_of",
    "descendants",
    "kill_with_warden",
    "pids",
    "process",
    "read",
    "wait_until",
    "warden_of",
]

WITHIN_S = 20.0
"""Bound of every wait, in seconds; generous, because the machine may be busy."""


def wait_until(condition: Callable[[], Any], what: str, within_s: float = WITHIN_S) -> Any:
    """Returns the condition's value as soon as it is true. Fails at the bound."""
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        select.select([], [], [], 0.003)
    return value


def pids() -> list[int]:
    """Returns every process of the machine. Tests read /proc also where the product does not."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(pid: int, name: str) -> bytes:
    """Returns one file of a process in /proc; empty if the process is gone."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def forks_of(pid: int) -> list[int]:
    """Returns the children of a process that run its own program: a fork has its command line."""
    command = read(pid, "cmdline")
    children = [entry.pid for entry in descendants(pid) if entry.parent == pid]
    return [child for child in children if command and read(child, "cmdline") == command]


def deputy_of(shim: int) -> int:
    """Waits for the deputy of a shim, and returns its pid."""
    return int(wait_until(lambda: forks_of(shim), "a deputy")[0])


def warden_of(shim: int) -> int:
    """Waits for the warden of a shim, the child of its deputy, and returns its pid."""
    return int(wait_until(lambda: forks_of(deputy_of(shim)), "a warden")[0])


def kill_with_warden(shim: int) -> None:
    """Kills a shim and its warden, so that neither of them notices the other's death."""
    warden = warden_of(shim)
    os.kill(shim, signal.SIGSTOP)
    os.kill(warden, signal.SIGKILL)
    os.kill(shim, signal.SIGKILL)


class Marked:
    """Gives the processes of a test a token, and tells which of them live."""

    def __init__(self) -> None:
        self.token = uuid.uuid4().hex

    def alive(self) -> list[int]:
        """Returns the pids of all living processes of the test, deputies and wardens included."""
        mark = f"SUB_TEST_TOKEN={self.token}".encode()
        return [
            pid
            for pid in pids()
            if pid != os.getpid() and mark in read(pid, "environ").split(b"\0")
        ]

    def wait_empty(self, within_s: float = WITHIN_S) -> float:
        """Waits until no process is left. Returns the seconds it took."""
        begin = time.monotonic()
        deadline = begin + within_s
        while self.alive():
            assert time.monotonic() < deadline, f"still there: {self.describe()}"
            select.select([], [], [], 0.003)
        return time.monotonic() - begin

    def describe(self) -> list[tuple[int, bytes, bytes]]:
        """Returns what lives, for a failed test's message."""
        return [
            (pid, read(pid, "stat").partition(b" (")[2][:40], read(pid, "cmdline")[-80:])
            for pid in self.alive()
        ]
