"""`sub hook`, which a client runs before and after each tool call, against a bare interpreter."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.harness import Result, command, interleaved

SUB = str(Path(sys.executable).with_name("sub"))
POLICY = """\
policy_id: bench
version: "1"
mode: guardrails
rules:
  - rule_id: no-rm
    kind: deny
    match: {tool_name: {glob: [rm]}}
    effect: {action: BLOCK, reason_code: DENIED, message: not that}
  - rule_id: many
    kind: budget
    match: {}
    effect: {budget: {scope: run, limit_calls: 1000000, on_exceed: BLOCK}}
"""
_numbers = itertools.count()


def event(name: str, session: str, number: int) -> bytes:
    """Returns an event as Claude Code sends it."""
    return json.dumps(
        {
            "session_id": session,
            "cwd": os.getcwd(),
            "hook_event_name": name,
            "tool_name": "Bash",
            "tool_input": {"command": f"git log --oneline -n {number}"},
            "tool_response": {"stdout": "x" * 200},
            "tool_use_id": f"toolu_{number}",
        }
    ).encode()


def hook(env: dict[str, str], name: str, session: str | None = "bench") -> Callable[[], object]:
    """Returns a task that runs one hook; without a session, each begins a new one."""

    def run() -> object:
        number = next(_numbers)
        text = event(name, session or f"new-{number}", number)
        return subprocess.run([SUB, "hook", "claude"], input=text, env=env, check=True)

    return run


def measure() -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o700)
        Path(home, "policy.yaml").write_text(POLICY)
        env = {**os.environ, "SUB_HOME": home, "CLAUDE_PID": str(os.getpid())}
        for name in ("SUB_RUN_ID", "CLAUDE_CODE_SESSION_ID"):
            env.pop(name, None)
        try:
            yield from _measured(env)
        finally:
            _end_sessions(home, env)


def _measured(env: dict[str, str]) -> Iterator[Result]:
    bare = command(sys.executable, "-S", "-E", "-c", "pass")
    first = hook(env, "PreToolUse", None)
    tasks = [bare, hook(env, "PreToolUse"), hook(env, "PostToolUse")]
    bare_s, before, after = interleaved(tasks, rounds=40)
    for name, seconds in (("before", before), ("after", after)):
        detail = f"{seconds * 1e3:.1f} ms against {bare_s * 1e3:.1f} ms"
        yield Result(
            f"sub hook {name} a call, over a bare start", seconds / bare_s, 2.5, False, detail
        )
    bare_s, begun = interleaved([bare, first], rounds=10)
    detail = f"{begun * 1e3:.1f} ms against {bare_s * 1e3:.1f} ms"
    yield Result("first event of a session, over a bare start", begun / bare_s, 60, False, detail)


def _end_sessions(home: str, env: dict[str, str]) -> None:
    for path in Path(home, "state", "hooks").glob("claude-*.sock"):
        session = path.stem.removeprefix("claude-")
        text = json.dumps({"session_id": session, "hook_event_name": "SessionEnd"}).encode()
        subprocess.run([SUB, "hook", "claude"], input=text, env=env, check=False)
