"""The demo's stage: a temporary home, the agent and the live stream side by side, then a look back.

Everything that it starts it ends, whatever happens; the home is removed unless it is kept.
"""

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from subluminal.cli.demo.policy import POLICY
from subluminal.cli.output import Output
from subluminal.cli.screens.events import EventLines
from subluminal.cli.screens.width import terminal_width
from subluminal.config.agent_environment import MARKERS
from subluminal.config.env import VARIABLES
from subluminal.contracts.vocabulary import EventType
from subluminal.ledger.client.journals import event_of
from subluminal.ledger.filter.matching import Passing

SUB = [sys.executable, "-P", "-m", "subluminal"]
AGENT = [sys.executable, "-P", "-m", "subluminal.cli.demo.agent"]
_MARGIN = 8
"""For who speaks."""
_SETTLE_S = 3.0
"""How long the stream may take to show the run's end."""


class Stage:
    """One performance."""

    def __init__(self, out: Output, home: str) -> None:
        self._out = out
        self._home = home
        markers = {marker.name for marker in MARKERS} | {each.name for each in VARIABLES}
        kept = ("NO_COLOR",)
        self._environ = {
            name: value for name, value in os.environ.items() if name not in markers or name in kept
        }
        self._environ["SUB_HOME"] = home
        self._environ["SUB_RUNTIME_DIR"] = os.path.join(home, "run")
        self._passing = Passing(())
        self._lines = EventLines(out, terminal_width() - _MARGIN)

    def play(self) -> int:
        """Runs the agent with the stream beside it; returns the agent's exit code."""
        with open(os.path.join(self._home, "policy.yaml"), "w", encoding="utf-8") as file:
            file.write(POLICY)
        tail = self._start("tail", "--since", "1m", "--json")
        run = self._start("run", "--agent-id", "demo-agent", "--env", "dev", "--", *AGENT)
        try:
            self._interleave({"agent": run, "tail": tail})
        finally:
            for process in (run, tail):
                process.terminate()
                process.wait()
                assert process.stdout is not None
                process.stdout.close()
        return run.returncode

    def look_back(self, *words: str) -> None:
        """Shows what a command says about it."""
        self._out.line(self._out.paint(f"$ sub {' '.join(words)}", "bold"))
        self._out.data(b"")
        subprocess.run([*SUB, *words], env=self._environ, check=False)
        self._out.line()

    def stop_daemon(self) -> None:
        subprocess.run(
            [*SUB, "ledgerd", "stop"],
            env=self._environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )

    def _start(self, *words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*SUB, *words],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def _interleave(self, players: "dict[str, subprocess.Popen[bytes]]") -> None:
        """Prints what both say, as they say it, until the stream has told the run's end."""
        rest = dict.fromkeys(players, b"")
        names = {player.stdout.fileno(): name for name, player in players.items() if player.stdout}
        deadline = None
        while deadline is None or time.monotonic() < deadline:
            for fd in select.select(list(names), [], [], 0.1)[0]:
                name = names[fd]
                data = os.read(fd, 65536)
                if not data:
                    del names[fd]
                *lines, rest[name] = (rest[name] + data).split(b"\n")
                ended = [line for line in lines if self._print(name, line)]
                if ended:
                    return
            if deadline is None and players["agent"].poll() is not None:
                deadline = time.monotonic() + _SETTLE_S

    def _print(self, name: str, line: bytes) -> bool:
        """Prints a line; True if it is the run's end."""
        text: str | None = line.decode(errors="replace")
        event = event_of(line) if name == "tail" else None
        if event is not None:
            text = self._lines.line(event, self._passing.facts(event))
        if text is not None:
            colour = "cyan" if name == "agent" else "dim"
            self._out.line(f"{self._out.paint(f'{name:>5} │', colour)} {text}")
            self._out.data(b"")
        return event is not None and event["type"] == EventType.RUN_END


@contextmanager
def temporary_home(*, keep: bool) -> Iterator[str]:
    """A home of its own, gone afterwards."""
    home = tempfile.mkdtemp(prefix="subluminal-demo-")
    try:
        yield home
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)
