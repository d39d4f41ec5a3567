"""Codex runs only the hooks that it trusts, says which, and has no hook for an open shell."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.clients import Programs
from tests.e2e.desk import Desk
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel, Thought
from tests.e2e.hooks import HOOKS, Recorder, write_hooks
from tests.e2e.kinds import CODEX

Model = Callable[..., FakeModel]


def ask(desk: Desk, programs: Programs) -> list[dict[str, Any]]:
    """Asks Codex for its hooks, as `sub doctor` does."""
    client = {"clientInfo": {"name": "tests", "title": "Tests", "version": "1"}}
    messages = [
        {"id": 0, "method": "initialize", "params": client},
        {"method": "initialized"},
        {"id": 1, "method": "hooks/list", "params": {"cwds": [str(desk.project)]}},
    ]
    command = [str(programs.codex), "app-server"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=desk.project, env=desk.env, text=True, **pipes) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        server.stdin.flush()
        answers = (json.loads(line) for line in server.stdout)
        answer = next(each for each in answers if each.get("id") == 1)
        server.stdin.close()
    (place,) = answer["result"]["data"]
    return list(place["hooks"])


@pytest.fixture
def recorder(desk: Desk, tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "recorded")


def test_a_hook_runs_once_its_hash_is_in_the_configuration(
    desk: Desk, programs: Programs, model: Model, recorder: Recorder
) -> None:
    fake = model([CODEX.tools.shell("echo fine")])
    config = CODEX.write_config(desk, fake, {})
    hooks = write_hooks("codex", desk, recorder)
    assert CODEX.start(desk, programs, fake).wait() == 0
    assert recorder.events() == []  # skipped, and nothing says so

    listed = ask(desk, programs)
    assert {hook["trustStatus"] for hook in listed} == {"untrusted"}
    before = next(hook for hook in listed if hook["eventName"] == "preToolUse")
    assert before["key"] == f"{hooks}:pre_tool_use:0:0"
    with open(config, "a") as file:
        file.write(f'[hooks.state."{before["key"]}"]\ntrusted_hash = "{before["currentHash"]}"\n')
    assert CODEX.start(desk, programs, fake).wait() == 0
    assert recorder.events() == ["PreToolUse"]

    status = {hook["eventName"]: hook["trustStatus"] for hook in ask(desk, programs)}
    assert (status["preToolUse"], status["postToolUse"]) == ("trusted", "untrusted")
    hooks.write_text(hooks.read_text().replace('"timeout": 30', '"timeout": 31'))
    status = {hook["eventName"]: hook["trustStatus"] for hook in ask(desk, programs)}
    assert (status["preToolUse"], status["postToolUse"]) == ("modified", "untrusted")


def test_what_is_typed_into_an_open_shell_has_no_hook(
    desk: Desk, programs: Programs, model: Model, recorder: Recorder
) -> None:
    mark = desk.project / "mark"

    def type_into_it(results: list[str]) -> ToolCall:
        found = re.search(r"session ID (\d+)", results[-1])
        assert found, results[-1]
        args = {"session_id": int(found[1]), "chars": f"touch {mark}; exit\n"}
        return ToolCall("", "write_stdin", args)

    shell = ToolCall("", "exec_command", {"cmd": "sh", "yield_time_ms": 300, "tty": True})
    fake = model([shell, Thought("", type_into_it)])
    CODEX.write_config(desk, fake, {})
    write_hooks("codex", desk, recorder)
    agent = CODEX.start(desk, programs, fake, options=HOOKS["codex"].options)
    assert agent.wait() == 0, agent.said
    assert mark.exists()
    before = [told.stdin["tool_input"] for told in recorder.told() if told.event == "PreToolUse"]
    assert before == [{"command": "sh"}]
