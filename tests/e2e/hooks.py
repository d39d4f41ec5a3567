"""The hooks of each client: where they are configured, what they are called, and a recorder."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.desk import Desk

RECORDER = Path(__file__).with_name("hook_recorder.py")
PLUGIN = Path(__file__).with_name("recorder_plugin.js")


class Told(NamedTuple):
    """What a client told a hook."""

    event: str
    stdin: dict[str, Any]
    env: dict[str, str]
    parents: list[str]
    """names of the processes above the hook, nearest first"""


class Recorder:
    """A folder of recorded events, and the command of the hook that writes them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.command = [sys.executable, str(RECORDER), str(folder)]
        self.answers({})

    def answers(self, answers: dict[str, dict[str, Any]]) -> None:
        """Sets the answers by event. `stdout` may be an object, which becomes JSON."""
        for answer in answers.values():
            if not isinstance(answer.get("stdout", ""), str):
                answer["stdout"] = json.dumps(answer["stdout"])
        (self.folder / "answers.json").write_text(json.dumps(answers))

    def told(self) -> list[Told]:
        """Returns the events in order of time."""
        records = [json.loads(file.read_text()) for file in sorted(self.folder.glob("*.event"))]
        return [Told(**{**record, "stdin": json.loads(record["stdin"])}) for record in records]

    def events(self) -> list[str]:
        return [told.event for told in self.told()]


class HookKind(NamedTuple):
    """How one client names its events."""

    path: str
    """path of the file with the hooks, below the home"""
    before: str
    after: str
    others: tuple[str, ...]
    options: tuple[str, ...] = ()
    """what the client must be started with to run a hook that nobody approved"""

    @property
    def events(self) -> list[str]:
        return [self.before, self.after, *self.others]


HOOKS = {
    "claude": HookKind(
        ".claude/settings.json",
        "PreToolUse",
        "PostToolUse",
        (
            "PostToolUseFailure",
            "PostToolBatch",
            "SessionStart",
            "UserPromptSubmit",
            "Stop",
            "SessionEnd",
        ),
    ),
    "codex": HookKind(
        ".codex/hooks.json",
        "PreToolUse",
        "PostToolUse",
        ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"),
        ("--dangerously-bypass-hook-trust",),
    ),
    "gemini": HookKind(
        ".gemini/settings.json",
        "BeforeTool",
        "AfterTool",
        ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"),
    ),
    "copilot": HookKind(
        ".copilot/hooks/subluminal.json",
        "preToolUse",
        "postToolUse",
        (
            "postToolUseFailure",
            "permissionRequest",
            "sessionStart",
            "userPromptSubmitted",
            "agentStop",
            "sessionEnd",
        ),
    ),
    "opencode": HookKind(
        ".config/opencode/plugin/subluminal.js", "tool.execute.before", "tool.execute.after", ()
    ),
}


def write_hooks(
    name: str, desk: Desk, recorder: Recorder, *, seconds: int = 30, **more: Any
) -> Path:
    """Configures the recorder for every event of a client, with more keys in each hook if given."""
    kind = HOOKS[name]
    path = desk.home / kind.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if name == "opencode":
        command = json.dumps(recorder.command)
        path.write_text(PLUGIN.read_text().replace('"@COMMAND@"', command))
        return path
    line = " ".join(recorder.command)
    settings = json.loads(path.read_text()) if path.exists() else {}
    if name == "copilot":
        entries: Any = {
            event: [{"type": "command", "bash": f"{line} {event}", "timeoutSec": seconds, **more}]
            for event in kind.events
        }
        settings["version"] = 1
    else:
        timeout = seconds * 1000 if name == "gemini" else seconds
        hook = {"type": "command", "command": line, "timeout": timeout, **more}
        entries = {event: [{"hooks": [hook]}] for event in kind.events}
    path.write_text(json.dumps({**settings, "hooks": entries}, indent=4))
    return path
