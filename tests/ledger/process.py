"""A real `sub ledgerd` in a child process, and bounded waits for what it does."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from subluminal.config.places import Places
from subluminal.ledger.client.http import Client, DaemonUnavailable
from subluminal.ledger.daemon.instance import read_note

PATIENCE_S = 20.0


def wait_until(
    holds: Callable[[], Any], what: str = "the condition", patience_s: float = PATIENCE_S
) -> Any:
    """Waits for a condition; the bound is for a busy machine, not for the daemon."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        value = holds()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come about within {patience_s} s")


class Ledgerd:
    """One daemon."""

    def __init__(self, places: Places, *words: str) -> None:
        self.places = places
        environ = {**os.environ, "SUB_HOME": places.home, "SUB_RUNTIME_DIR": places.runtime_dir}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "subluminal", "ledgerd", *words],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.client = Client(places)

    def ready(self) -> "Ledgerd":
        wait_until(self._answers, "an answer of ledgerd")
        return self

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.output()
        note = read_note(self.places)
        if note is None or note.pid != self.process.pid:
            return False
        try:
            return bool(self.client.get("/v1/status")["running"])
        except DaemonUnavailable:
            return False

    def has_stored(self, events: int, patience_s: float = PATIENCE_S) -> None:
        wait_until(
            lambda: self.client.get("/v1/status")["events_total"] >= events,
            f"{events} events",
            patience_s,
        )

    def kill(self) -> None:
        """kill -9"""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def output(self) -> str:
        """All that it said; waits for its end."""
        assert self.process.stdout is not None
        return self.process.stdout.read().decode()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
