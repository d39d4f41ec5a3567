"""What each client does with an answer of its hook, before a call. Our door relies on every line.

A form that one client takes for a refusal is no refusal for another, which then runs the call.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.e2e.clients import Programs
from tests.e2e.desk import Desk
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.hooks import HOOKS, Recorder, write_hooks
from tests.e2e.kinds import ALL_KINDS

WHY = "the reason"
NO_MORE = {"continue": False, "stopReason": "the end"}


def specific(decision: str, reason: str = WHY) -> dict[str, Any]:
    """The form of Claude Code and Codex."""
    told = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **told}}


COPILOT = {"permissionDecision": "deny", "permissionDecisionReason": WHY}
GEMINI = {"decision": "deny", "reason": WHY}
TEXT_AND_2 = {"stderr": WHY, "exit": 2}


class Case(NamedTuple):
    """An answer and what follows. With no text shown, the calls run."""

    name: str
    client: str
    answer: dict[str, Any]
    shown: str | None = None
    """what the model is shown of the refused calls"""
    ends: bool = False
    """whether the client stops at the first call, so that the model is shown nothing"""
    more: tuple[tuple[str, Any], ...] = ()
    """more keys of the hook"""


RUNS = None
CASES = [
    Case("deny", "claude", {"stdout": specific("deny")}, f"hook error: {WHY}"),
    Case("deny", "codex", {"stdout": specific("deny")}, f"blocked by PreToolUse hook: {WHY}."),
    Case("deny", "gemini", {"stdout": GEMINI}, f"Tool execution blocked: {WHY}"),
    Case("deny", "copilot", {"stdout": COPILOT}, f"Denied by preToolUse hook: {WHY}"),
    Case("deny", "opencode", {"stdout": WHY}, WHY),
    # The run has ended.
    Case("end", "claude", {"stdout": specific("deny") | NO_MORE}, "", ends=True),
    Case("end", "gemini", {"stdout": GEMINI | NO_MORE}, "", ends=True),
    # We fail.
    Case("exit-1", "claude", {"stderr": WHY, "exit": 1}, RUNS),
    Case("exit-1", "codex", {"stderr": WHY, "exit": 1}, RUNS),
    Case("exit-1", "gemini", {"stderr": WHY, "exit": 1}, RUNS),
    Case("exit-1", "copilot", {"stderr": WHY, "exit": 1}, "(hook errored)"),
    Case("block", "claude", {"exit": 1}, "failed; blocking", more=(("onFailure", "block"),)),
    Case("late", "claude", {"sleep": 4}, RUNS),
    Case("late-block", "claude", {"sleep": 4}, "timed out", more=(("onFailure", "block"),)),
    Case("late", "codex", {"sleep": 4}, RUNS),
    Case("late", "gemini", {"sleep": 4}, RUNS),
    Case("late", "copilot", {"sleep": 4}, RUNS),
    # To refuse nonetheless, a text is needed.
    Case("exit-2", "codex", TEXT_AND_2, WHY),
    Case("exit-2", "gemini", TEXT_AND_2, WHY),
    Case("exit-2", "copilot", TEXT_AND_2, "hook exited with code 2"),
    Case("silent-exit-2", "codex", {"exit": 2}, RUNS),
    Case("silent-exit-2", "gemini", {"exit": 2}, RUNS),
    # What looks like a refusal.
    Case("garbage", "claude", {"stdout": "no"}, RUNS, more=(("onFailure", "block"),)),
    Case("garbage", "copilot", {"stdout": "no"}, RUNS),
    Case("ask", "claude", {"stdout": specific("ask")}, WHY),
    Case("ask", "codex", {"stdout": specific("ask")}, RUNS),
    Case("no-reason", "codex", {"stdout": specific("deny", "")}, RUNS),
    Case("end", "codex", {"stdout": specific("deny") | NO_MORE}, RUNS),
    Case("more-keys", "codex", {"stdout": specific("deny") | {"more": 1}}, RUNS),
    Case("claude-s", "gemini", {"stdout": specific("deny")}, RUNS),
    Case("claude-s", "copilot", {"stdout": specific("deny")}, RUNS),
    Case("gemini-s", "copilot", {"stdout": GEMINI}, RUNS),
    Case("copilot-s", "claude", {"stdout": COPILOT}, RUNS),
]


class Ran(NamedTuple):
    """What a session with one call of the client's own and one of a server's left."""

    requests: int
    results: list[str]
    shell_ran: bool
    events: list[str]


@pytest.fixture
def run(
    desk: Desk,
    programs: Programs,
    model: Callable[..., FakeModel],
    probe: list[str],
    tmp_path: Path,
) -> Callable[..., Ran]:
    """`run(client, answer, **keys)`: a session whose hook answers so before every call."""

    def start(client: str, answer: dict[str, Any], *options: str, **more: Any) -> Ran:
        kind, hooks = ALL_KINDS[client], HOOKS[client]
        mark = desk.project / "mark"
        calls = [kind.tools.shell(f"touch {mark}"), ToolCall("near", "echo", {"text": "hello"})]
        fake = model(calls)
        kind.write_config(desk, fake, {"near": probe})
        recorder = Recorder(tmp_path / "recorded")
        recorder.answers({hooks.before: answer})
        write_hooks(client, desk, recorder, seconds=2 if "sleep" in answer else 30, **more)
        agent = kind.start(desk, programs, fake, options=(*hooks.options, *options))
        assert agent.wait() == 0, agent.said
        return Ran(len(fake.requests), fake.last_results(), mark.exists(), recorder.events())

    return start


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.client}-{case.name}")
def test_an_answer_means(case: Case, run: Callable[..., Ran]) -> None:
    ran = run(case.client, case.answer, **dict(case.more))
    hooks = HOOKS[case.client]
    if case.shown is None:
        assert ran.shell_ran
        assert "echo: hello" in ran.results[1]
        assert ran.events.count(hooks.after) == 2
        return
    assert not ran.shell_ran
    assert hooks.after not in ran.events
    if case.ends:
        assert (ran.requests, ran.results) == (1, [])
        assert ran.events[-1] == "SessionEnd"
    else:
        assert all(case.shown in result for result in ran.results)
        assert len(ran.results) == 2


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "auto", "bypassPermissions"])
def test_claude_refuses_what_it_can_ask_nobody(run: Callable[..., Ran], mode: str) -> None:
    ran = run("claude", {"stdout": specific("ask")}, "--permission-mode", mode)
    assert not ran.shell_ran
    assert ran.results == [WHY, WHY]


def test_claude_runs_the_call_before_it_stops_for_continue_false_alone(
    run: Callable[..., Ran],
) -> None:
    ran = run("claude", {"stdout": NO_MORE})
    assert ran.shell_ran
    assert ran.requests == 1
