"""`sub run` in a household: its home, its processes, and nothing left of them afterwards."""

import pathlib
import subprocess
import sys

import pytest
from tests.shim.household import SUB, WITHIN_S, Household

AGENT = str(pathlib.Path(__file__).parent / "agent.py")


class Runner(Household):
    """Starts agents by `sub run`."""

    def start_run(self, *words, command, **popen):
        """`sub run WORDS… -- COMMAND…`, with pipes."""
        process = subprocess.Popen(
            [*SUB, "run", *words, "--", *command],
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "env": self.env(),
                "cwd": self.cwd,
                "text": True,
                **popen,
            },
        )
        self.started.append(process)
        return process

    def run(self, *words, command, **popen):
        """The same to its end: exit code, stdout, stderr."""
        process = self.start_run(*words, command=command, **popen)
        out, err = process.communicate(timeout=WITHIN_S)
        return process.returncode, out, err

    def agent(self, last, *tools, server=()):
        """The command of an agent that calls tools through a shim."""
        shim = [*SUB, "shim", "stdio", "--server", "echo", "--", *self.server(*server)]
        return [sys.executable, "-I", "-S", AGENT, last, *tools, "--", *shim]


@pytest.fixture
def runner(tmp_path, own_home, subreaper):
    house = Runner(tmp_path, own_home)
    house.started = []
    yield house
    house.clean()
    for process in house.started:
        process.kill()
        process.wait(WITHIN_S)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
