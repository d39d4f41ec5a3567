"""A real `sub shim stdio` between a test and an upstream program."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.adapters.records import events_of, lines_of

UPSTREAMS = Path(__file__).parent / "upstreams"
WITHIN_S = 30.0
"""Bound of every wait; on a busy machine a second is nothing."""


def upstream(name: str, *words: object) -> list[str]:
    """The command of an upstream program of these tests. Isolated: it starts in a few ms."""
    return [sys.executable, "-I", "-S", str(UPSTREAMS / f"{name}.py"), *map(str, words)]


class Wire:
    """One shim, or with `shimmed=False` the bare server. Never blocks on one direction."""

    def __init__(
        self,
        command: list[str],
        *,
        home: Path,
        place: Path,
        policy: dict[str, Any] | None = None,
        config: str = "",
        shimmed: bool = True,
        env: dict[str, str] | None = None,
    ) -> None:
        self.home = home
        words = [sys.executable, "-m", "subluminal", "shim", "stdio", "--server", "probe"]
        if policy is not None:
            file = place / "policy.json"
            file.write_text(json.dumps(policy))
            words += ["--policy", str(file)]
        if config:
            home.mkdir(parents=True, exist_ok=True)
            (home / "config.toml").write_text(config)
            (home / "config.toml").chmod(0o600)
        self.process = subprocess.Popen(
            [*words, "--", *command] if shimmed else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
            env={**os.environ, "SUB_RUN_ID": "run-1", **(env or {})},
            start_new_session=True,
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._err = self.process.stderr.fileno()
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        self.received = b""
        """all that the client has read"""
        self.stderr = b""
        self._taken = 0
        self._open = {self._out, self._err}

    def send(self, data: bytes, *, read: bool = True) -> None:
        """Writes all of it, and meanwhile reads what comes."""
        left = memoryview(data)
        deadline = time.monotonic() + WITHIN_S
        while left:
            assert time.monotonic() < deadline, "the shim does not take what the client writes"
            if self._poll(read=read, write=True):
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(self._in, left[:65536]) :]

    def line(self) -> Any:
        """Waits for the next line of the client's, and parses it."""
        return json.loads(self.raw_line())

    def raw_line(self) -> bytes:
        """Waits for the next line of the client's."""
        deadline = time.monotonic() + WITHIN_S
        while (end := self.received.find(b"\n", self._taken)) < 0:
            assert time.monotonic() < deadline, f"no line; stderr: {self.stderr!r}"
            assert self._out in self._open, f"the shim is gone; stderr: {self.stderr!r}"
            self._poll()
        line = self.received[self._taken : end]
        self._taken = end + 1
        return line

    def wait_for_policy(self) -> None:
        """Waits until the policy that this shim was given is in force."""
        self.wait_for('"policy_loaded"')

    def wait_for(self, text: str) -> None:
        """Waits until an event with this text is on record."""
        deadline = time.monotonic() + WITHIN_S
        while not any(text.encode() in line for _, line in lines_of(self.home)):
            assert time.monotonic() < deadline, f"no {text}; stderr: {self.stderr!r}"
            self._poll()

    def finish(self, *, signum: int = 0) -> int:
        """Ends as a client does: closes stdin, reads to the end. Returns the exit code."""
        if signum:
            self.process.send_signal(signum)
        if self.process.stdin and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        deadline = time.monotonic() + WITHIN_S
        while self._open:
            assert time.monotonic() < deadline, "the shim does not end"
            self._poll()
        return self.process.wait(WITHIN_S)

    def events(self) -> list[dict[str, Any]]:
        """The record of all shims of this home, proven sound."""
        return events_of(self.home)

    def abandon(self) -> None:
        """What is left after a failed test goes at once."""
        if self.process.poll() is None:
            # A group of its own, so only what this test started.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    def _poll(self, *, read: bool = True, write: bool = False) -> bool:
        """One bounded wait. True if stdin takes more."""
        readers = [fd for fd in self._open if read or fd == self._err]
        ready, writable, _ = select.select(readers, [self._in] if write else [], [], 0.02)
        for fd in ready:
            data = os.read(fd, 1 << 20)
            if not data:
                self._open.discard(fd)
            elif fd == self._out:
                self.received += data
            else:
                self.stderr += data
        return bool(writable)
