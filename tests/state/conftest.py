"""Processes of a run, and the certainty that none outlives its test."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from subluminal.state.run_state import RunState

WORKER = Path(__file__).with_name("worker.py")
WITHIN_S = 20.0
"""Bound of every wait; a busy machine may need seconds to start eight processes."""


def until(condition, what):
    """Waits for a condition, and fails at the bound."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {WITHIN_S} s: {what}"


class Worker:
    """One running worker."""

    def __init__(self, verb, state_dir, run_id):
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), verb, state_dir, run_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self):
        return self.process.pid

    def hear(self):
        return self.process.stdout.readline().strip()

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def state_dir(tmp_path):
    return str(tmp_path / "state")


@pytest.fixture
def state(state_dir):
    with RunState.open(state_dir, "run") as state:
        yield state


@pytest.fixture
def start(state_dir):
    """Starts a worker on the run of `state`."""
    workers = []

    def start_one(verb, run_id="run"):
        workers.append(Worker(verb, state_dir, run_id))
        return workers[-1]

    yield start_one
    for worker in workers:
        worker.end()
