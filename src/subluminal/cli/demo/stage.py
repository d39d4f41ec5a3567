"""The demo's stage: its policy, a temporary home, the agent and the live stream side by side.

Every process that it starts it also ends. The home is deleted unless it is kept.
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

from subluminal.cli.output import Output
from subluminal.cli.screens.events import EventLines
from subluminal.config.agent_environment import MARKERS
from subluminal.config.env import VARIABLES
from subluminal.contracts.vocabulary import EventType
from subluminal.ledger.client.journals import event_of
from subluminal.ledger.filter.matching import Passing

POLICY = """\
policy_id: demo
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules:
  - rule_id: no-deletes
    kind: deny
    enabled: true
    severity: critical
    match: {tool_name: {glob: ["delete_*"]}}
    effect: {action: BLOCK, reason_code: NO_DELETES, message: agents do not delete files here}

  - rule_id: small-searches
    kind: deny
    enabled: true
    severity: warn
    match: {tool_name: {glob: [search]}, args: {numeric_range: {limit: {min: 101}}}}
    effect:
      action: REJECT_WITH_HINT
      reason_code: LIMIT_TOO_LARGE
      message: a search returns at most 100 lines
      hint_text: ask for at most 100 lines
      suggest: {limit: {clamp_max: 100}}

  - rule_id: slowly
    kind: rate_limit
    enabled: true
    severity: info
    match: {tool_name: {glob: [list_files]}}
    effect:
      rate_limit: {scope: tool, capacity: 2, refill_tokens: 1, refill_period_ms: 1500,
                   on_limit: THROTTLE, backoff_ms: 1000}

  - rule_id: no-loops
    kind: breaker
    enabled: true
    severity: critical
    match: {tool_name: {glob: [read_file]}}
    effect:
      breaker: {scope: server_tool, repeat_threshold: 5, repeat_window_ms: 60000,
                on_trip: TERMINATE_RUN, terminate_code: LOOP}
"""

SUB = [sys.executable, "-P", "-m", "subluminal"]
AGENT = [sys.executable, "-P", "-m", "subluminal.cli.demo.agent"]
_MARGIN = 8
"""Columns for the name of the speaker."""
_SETTLE_S = 3.0
"""Time for the stream to show the end of the run."""


class Stage:
    """One run of the demo."""

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
        self._lines = EventLines(out, _MARGIN)

    def play(self) -> int:
        """Runs the agent beside the live stream; returns the agent's exit code."""
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
        """Prints a command and its output."""
        self._out.line(self._out.paint(f"$ sub {' '.join(words)}", "bold"))
        self._out.data(b"")
        subprocess.run([*SUB, *words], env=self._environ, check=False)
        self._out.line()

    def stop_daemon(self) -> None:
        """Stops the ledgerd of the demo's home."""
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
        """Prints the lines of both as they arrive, until the stream shows the end of the run."""
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
        """Prints a line; returns whether it is the end of the run."""
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
    """A new home, deleted afterwards unless `keep`."""
    home = tempfile.mkdtemp(prefix="subluminal-demo-")
    try:
        yield home
    finally:
        if not keep:
            shutil.rmtree(home, ignore_errors=True)
