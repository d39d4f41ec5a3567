"""One user's desk: a home with a client's configuration in it, `sub`, and agents that are started.

Everything happens in folders of the test. What an agent starts is known by process id and start
time, and must be gone when the test ends.
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

from subluminal.supervise.processes import descendants, process

SUB = Path(sys.executable).with_name("sub")
ORPHAN_S = 5
"""How long anything may live on after its agent."""
AGENT_S = 90
"""How long an agent may take in all, on a machine that is busy with twenty of them."""


def wait_until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    """Waits for a condition, with a bound."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Started(NamedTuple):
    """A process that cannot be mistaken for a later one of the same number."""

    pid: int
    start_ticks: int
    name: str

    @property
    def lives(self) -> bool:
        now = process(self.pid)
        return now is not None and now.start_ticks == self.start_ticks and not now.is_dead


class Agent:
    """A client that runs headless. Its process group is its own."""

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
        """Both streams, for a failing test."""
        return self.out + Path(f"{self._log}.err").read_text("utf-8", "replace")

    def look(self) -> list[Started]:
        """Notes every process below the agent."""
        found = descendants(self._child.pid)
        self.family = [Started(p.pid, p.start_ticks, p.name) for p in found]
        return self.family

    def kill(self, number: signal.Signals) -> None:
        self._child.send_signal(number)

    def wait(self) -> int:
        return self._child.wait(AGENT_S)

    def assert_nothing_is_left(self) -> None:
        """The agent is gone, and within the bound everything that it started."""
        self._child.wait(ORPHAN_S)
        told = [f"{p.name} ({p.pid})" for p in self.family]
        wait_until(lambda: not any(p.lives for p in self.family), ORPHAN_S, f"gone: {told}")

    def stop(self) -> None:
        """Ends whatever a failing test left."""
        self.look()
        for found in [*self.family, Started(self._child.pid, 0, "agent")]:
            if found.start_ticks == 0 or found.lives:
                try:
                    os.kill(found.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self._child.wait(ORPHAN_S)


class Desk:
    """A home, a project, and what runs there."""

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

    def start(self, command: list[str], extra: dict[str, str]) -> Agent:
        log = self.home / f"agent-{len(self.agents)}.log"
        agent = Agent(command, self.project, {**self.env, **extra}, log)
        self.agents.append(agent)
        return agent

    def policy(self, text: str) -> None:
        """The user's layer."""
        self.sub_home.mkdir(exist_ok=True)
        (self.sub_home / "policy.yaml").write_text(text)

    def runs(self) -> dict[str, list[dict[str, Any]]]:
        """Every run's events, by its name, in the order of their time."""
        found: dict[str, list[dict[str, Any]]] = {}
        for file in sorted((self.sub_home / "journal").glob("*/*.jsonl")):
            for line in file.read_text("utf-8").splitlines():
                event = json.loads(line)
                found.setdefault(event["run_id"], []).append(event)
        for events in found.values():
            events.sort(key=lambda event: event["ts"])
        return found

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """What the ledger answers to a query."""
        return [json.loads(line) for line in self.sub("query", *words, "--json").splitlines()]

    def close(self) -> None:
        for agent in self.agents:
            agent.stop()
        if self.sub_home.exists():
            self.sub("ledgerd", "stop")  # a query starts it


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The events of one type."""
    return [event for event in events if event["type"] == kind]


def is_closed(events: list[dict[str, Any]]) -> bool:
    """Whether the run has begun once, and its end was recorded."""
    return len(of_type(events, "run_start")) == 1 and bool(of_type(events, "run_end"))
