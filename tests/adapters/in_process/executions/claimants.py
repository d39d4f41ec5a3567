"""Processes that claim: one that stops at barriers to be killed there, and many that race.

Run as a program, this file is such a process.
"""

import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.processes import wait_until

from subluminal.adapters.in_process.executions import KeptExecutions, open_executions
from subluminal.config.places import Places
from subluminal.kernel.executions import ExecutionStatus, LedgerEntry

BARRIERS = ("opened", "claimed", "journalled", "handling", "handled", "finished")


def hash_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def entry(
    name: str, session_id: str = "test", resource_version: str = "", intent_hash: str = ""
) -> LedgerEntry:
    at, hashed = "2026-11-16T00:00:00.000Z", intent_hash or hash_of(name)
    return LedgerEntry(hashed, at, session_id, "pix.charge.refund", resource_version)


class Claimant:
    """A process that claims, journals, handles and finishes, one line at a time."""

    def __init__(self, setting: str, home: Places, name: str, *, forks: bool = False) -> None:
        self._process = _start(setting, home, "fork" if forks else "step", name)
        self.child = 0
        self._forks = forks

    def reach(self, barrier: str) -> None:
        """Lets the process go on until it says that it is there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for expected in BARRIERS[: BARRIERS.index(barrier) + 1]:
            said = self._process.stdout.readline().split()
            assert said[0] == expected, said
            if self._forks and expected == "claimed":
                self.child = int(said[1])
            if expected != barrier:
                self._process.stdin.write("go\n")
                self._process.stdin.flush()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @staticmethod
    def wait_for(condition: Callable[[], Any]) -> None:
        wait_until(condition, "the claimant's end to be known")

    def __enter__(self) -> "Claimant":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self.child:
            os.kill(self.child, signal.SIGKILL)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


@contextmanager
def hot_loop(setting: str, home: Places) -> Iterator[None]:
    """Has a process that claims all the time."""
    process = _start(setting, home, "loop", "loop")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "opened\n"
        yield
    finally:
        process.kill()
        process.communicate()


def race(setting: str, home: Places, processes: int) -> list[dict[str, Any]]:
    """Lets processes claim one hash at the same time; returns what each was told."""
    racers = [_start(setting, home, "race", str(number)) for number in range(processes)]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "opened\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        told = [json.loads(racer.stdout.readline()) for racer in racers if racer.stdout]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    return told


def _start(setting: str, home: Places, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, __file__, setting, home.home, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _step(ledger: KeptExecutions, name: str, *, forks: bool) -> None:
    _say("opened")
    sys.stdin.readline()
    assert ledger.claim(entry(name, session_id="claimant")) is None
    child = 0
    if forks:
        child = os.fork()
        if not child:
            signal.pause()
    for barrier in ("claimed", "journalled", "handling", "handled"):
        _say(f"{barrier} {child}")
        sys.stdin.readline()
    ledger.finish(hash_of(name), ExecutionStatus.DONE)
    _say("finished")
    sys.stdin.readline()


def _race(ledger: KeptExecutions, session: str) -> None:
    _say("opened")
    sys.stdin.readline()
    held = ledger.claim(entry("race", session_id=session))
    _say(json.dumps({"session": session, "held": held and held.session_id}))
    sys.stdin.readline()  # a claimant that is gone would be told as unknown


def _loop(ledger: KeptExecutions) -> None:
    for number in itertools.count():
        ledger.claim(entry(f"loop {number}"))
        if number == 3:
            _say("opened")


if __name__ == "__main__":
    chosen, where, what, given = sys.argv[1:]
    opened = open_executions(chosen, Places(where, where))
    assert opened is not None
    if what == "race":
        _race(opened, given)
    elif what == "loop":
        _loop(opened)
    else:
        _step(opened, given, forks=what == "fork")
