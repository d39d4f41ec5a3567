"""One user's desk: a home with a client's configuration, `sub`, and running agents.

All files are in directories of the test. Every process that an agent starts is noted with its pid
and start time, and must be gone when the test ends.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.terminal import typed

from subluminal.system.proc import descendants, process

SUB = Path(sys.executable).with_name("sub")
ORPHAN_S = 5
"""How long a process may outlive its agent, in seconds."""
AGENT_S = 90
"""How long an agent may run, in seconds, on a machine that is busy with twenty of them."""


def wait_until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    """Waits until a condition holds. Fails at the bound."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Started(NamedTuple):
    """A process, with its start time to tell it from a later process with the same pid."""

    pid: int
    start: int
    name: str

    @property
    def lives(self) -> bool:
        now = process(self.pid)
        return now is not None and now.start == self.start and not now.is_dead


class Agent:
    """A client that runs headless, in a process group of its own."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str], log: Path) -> None:
        self._log = log
        with open(log, "wb") as out, open(f"{log}.err", "wb") as err:
            self._child = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        self.family: list[Started] = []

    @property
    def out(self) -> str:
        return self._log.read_text("utf-8", "replace")

    @property
    def said(self) -> str:
        """Returns both output streams, for the message of a failing test."""
        return self.out + Path(f"{self._log}.err").read_text("utf-8", "replace")

    def look(self) -> list[Started]:
        """Notes every process below the agent."""
        found = descendants(self._child.pid)
        self.family = [Started(p.pid, p.start, p.name) for p in found]
        return self.family

    def kill(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self) -> int:
        return self._child.wait(AGENT_S)

    def assert_nothing_is_left(self) -> None:
        """Checks that the agent is gone, and soon every process that it started."""
        self._child.wait(ORPHAN_S)
        told = [f"{p.name} ({p.pid})" for p in self.family]
        wait_until(lambda: not any(p.lives for p in self.family), ORPHAN_S, f"gone: {told}")

    def stop(self) -> None:
        """Ends the processes that a failing test left."""
        self.look()
        for found in [*self.family, Started(self._child.pid, 0, "agent")]:
            if found.start == 0 or found.lives:
                try:
                    os.kill(found.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self._child.wait(ORPHAN_S)


class Desk:
    """A home, a project, and the agents that run there."""

    def __init__(self, folder: Path, path: str) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.sub_home = self.home / ".subluminal"
        for made in (self.home, self.project):
            made.mkdir(parents=True)
        self.env = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "USER": "tester"}
        self.agents: list[Agent] = []

    def sub(self, *words: str) -> str:
        """Runs `sub`, which must succeed, and returns what it printed."""
        ran = subprocess.run(
            [str(SUB), *words],
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def agree(self, *words: str) -> None:
        """Runs `sub` at a terminal, and says yes to its question."""
        shown = typed([str(SUB), *words], "[y/N]", "y", env=self.env, cwd=str(self.project))
        assert shown.code == 0, shown.text

    def start(self, command: list[str], extra: dict[str, str]) -> Agent:
        log = self.home / f"agent-{len(self.agents)}.log"
        agent = Agent(command, self.project, {**self.env, **extra}, log)
        self.agents.append(agent)
        return agent

    def policy(self, text: str) -> None:
        """Writes the policy of the user's layer."""
        self.sub_home.mkdir(exist_ok=True)
        (self.sub_home / "policy.yaml").write_text(text)

    def runs(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the events of every run by its id, in order of time."""
        found: dict[str, list[dict[str, Any]]] = {}
        for file in sorted((self.sub_home / "journal").glob("*/*.jsonl")):
            for line in file.read_text("utf-8").splitlines():
                event = json.loads(line)
                found.setdefault(event["run_id"], []).append(event)
        for events in found.values():
            events.sort(key=lambda event: event["ts"])
        return found

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """Returns the rows that `sub query` prints."""
        return [json.loads(line) for line in self.sub("query", *words, "--json").splitlines()]

    def close(self) -> None:
        for agent in self.agents:
            agent.stop()
        if self.sub_home.exists():
            self.sub("ledgerd", "stop")  # a query starts it


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Returns the events of one type."""
    return [event for event in events if event["type"] == kind]


def is_closed(events: list[dict[str, Any]]) -> bool:
    """Whether the run began exactly once and its end was recorded."""
    return len(of_type(events, "run_start")) == 1 and bool(of_type(events, "run_end"))
