"""The fixture `household`: starts shims for a test, and proves that no process of them is left."""

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys

import pytest
from tests.processes import WITHIN_S, Marked, deputy_of, descendants, wait_until, warden_of

from subluminal.system import PLAIN_POSIX

HERE = pathlib.Path(__file__).parent
SRC = str(HERE.parents[1] / "src")
DRIVER = [sys.executable, "-I", "-S", str(HERE / "driver.py"), SRC]


class Shim:
    """One running driver."""

    def __init__(self, household, argv, record, options, via=()):
        self.household = household
        self.record = record
        plain = {PLAIN_POSIX: "1"} if options.pop("plain_posix", False) else {}
        options = {"argv": argv, "record": str(record), **options}
        self.process = subprocess.Popen(
            [*via, *DRIVER, json.dumps(options), "shim", "stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **plain, "SUB_TEST_TOKEN": household.token},
            start_new_session=True,
        )
        household.shims.append(self)

    @property
    def pid(self):
        return self.process.pid

    @property
    def deputy(self):
        return deputy_of(self.pid)

    @property
    def warden(self):
        return warden_of(self.pid)

    def records(self, kind=None):
        text = self.record.read_text() if self.record.exists() else ""
        lines = [json.loads(line) for line in text.splitlines()]
        return [line for line in lines if kind in (None, line["kind"])]

    def kinds(self):
        return [line["kind"] for line in self.records() if line["kind"] != "deputy"]

    def wait_record(self, kind):
        return wait_until(lambda: self.records(kind), f"a record `{kind}`")[0]

    def read_line(self):
        """Reads one line from the upstream, byte by byte, so that no later byte is lost in a buffer."""
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], WITHIN_S)
            assert ready, f"no line from the upstream, only {line!r}"
            byte = os.read(self.process.stdout.fileno(), 1)
            assert byte, f"the upstream's output ended after {line!r}"
            line += byte
        return line.decode().strip()

    def ready(self):
        assert self.read_line() == "ready"
        return self

    def kill(self, number):
        os.kill(self.pid, number)

    def close(self):
        self.process.stdin.close()

    def wait(self):
        return self.process.wait(WITHIN_S)


class Household(Marked):
    """The processes of one test. All of them inherit a token in their environment."""

    def __init__(self, tmp_path):
        self.tmp_path = tmp_path
        super().__init__()
        self.shims = []

    def start(self, *argv, via=(), **options):
        record = self.tmp_path / f"record-{len(self.shims)}"
        return Shim(self, list(argv), record, options, via)

    def clean(self):
        """Kills the processes that a failed test left, and reaps those that the test process adopted."""
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for shim in self.shims:
            shim.process.kill()
            shim.process.wait(WITHIN_S)
            shim.process.stdin.close()
            shim.process.stdout.close()
        for entry in descendants(os.getpid()):
            if entry.is_dead and entry.parent == os.getpid():
                os.waitpid(entry.pid, 0)


@pytest.fixture
def household(tmp_path, subreaper):
    """A household whose orphans the test process adopts and reaps."""
    home = Household(tmp_path)
    yield home
    home.clean()
