"""What each client tells its hooks in a session. `tests/data/hooks` has it; HOOKS=write renews it.

Names of the machine, ids and times are replaced, so that the files stay the same.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.clients import Programs
from tests.e2e.desk import Desk
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.hooks import HOOKS, RECORDER, Recorder, Told, write_hooks
from tests.e2e.kinds import Kind

DATA = Path(__file__).parents[1] / "data" / "hooks"
REFUSED = "echo refuse me"
FORMS: dict[str, Any] = {
    "claude": {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "not that",
        }
    },
    "gemini": {"decision": "deny", "reason": "not that"},
    "copilot": {"permissionDecision": "deny", "permissionDecisionReason": "not that"},
    "opencode": "not that",
}
FORMS["codex"] = FORMS["claude"]
RANDOM = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\b(ses|evt|msg|prt|per)_[0-9A-Za-z]{20,}", r"\1_ID"),
    (r"rollout-[0-9T-]+-ID", "rollout-TIME-ID"),
    (r"sessions/\d{4}/\d\d/\d\d", "sessions/DAY"),
    (r"session-[0-9T-]+-[0-9a-f]{8}\b", "session-TIME-ID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"PGID: \d+", "PGID: 1"),
]
TIMES = {"timestamp", "duration_ms", "time", "start", "end", "created", "updated", "slug"}


def steady(value: Any, key: str = "") -> Any:
    """Replaces times and made-up names in a JSON value."""
    if isinstance(value, dict):
        return {name: steady(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [steady(each, key) for each in value]
    if key in TIMES and not isinstance(value, bool) and value is not None:
        return 1 if isinstance(value, int | float) else "TIME"
    return value


def without_names(text: str, desk: Desk, probe: list[str]) -> str:
    """Replaces paths and ids in the text of a JSON value."""
    text = text.replace(str(desk.project), "/project").replace(str(desk.project)[1:], "project")
    text = text.replace(re.sub(r"[^a-zA-Z0-9]", "-", str(desk.project)), "-project")
    text = text.replace(str(desk.home), "/home/tester")
    text = text.replace(probe[0], "/usr/bin/python3").replace(probe[1], "/opt/probe_server.py")
    for pattern, name in RANDOM:
        text = re.sub(pattern, name, text)
    return text


def as_files(told: list[Told], desk: Desk, probe: list[str]) -> dict[str, str]:
    """Returns the files of a session, by name, in the order of its events."""
    # Copilot CLI runs the hooks of the start and of the prompt at the same time.
    told = sorted(told, key=lambda each: each.event != "sessionStart")
    names = [each.event for each in told]
    if "dispose" in names:  # opencode sometimes loads its plugins once more as it ends
        told = told[: names.index("dispose") + 1]
    files = {}
    for number, each in enumerate(told, 1):
        text = json.dumps(steady(each.stdin), indent=2) + "\n"
        files[f"{number:02}-{each.event}.json"] = without_names(text, desk, probe)
    return files


def test_a_session_s_events_are_the_recorded_ones(
    any_kind: Kind,
    desk: Desk,
    programs: Programs,
    model: Callable[..., FakeModel],
    probe: list[str],
    remote: str,
    tmp_path: Path,
) -> None:
    tools, name = any_kind.tools, any_kind.name
    own = [tools.shell("echo fine"), tools.shell("echo wrong; exit 3"), tools.shell(REFUSED)]
    own += [tools.write(desk.project / "new.txt", "text\n")]
    near = [ToolCall("near", tool, {"text": "a"}) for tool in ("echo", "fail", "break")]
    fake = model([*own, *near, ToolCall("far", "echo", {"text": "b"})])
    any_kind.write_config(desk, fake, {"near": probe, "far": remote})
    recorder = Recorder(tmp_path / "recorded")
    recorder.answers({HOOKS[name].before: {"when": REFUSED, "stdout": FORMS[name]}})
    write_hooks(name, desk, recorder)
    agent = any_kind.start(desk, programs, fake, options=HOOKS[name].options)
    assert agent.wait() == 0, agent.said
    assert "not that" in fake.last_results()[2]

    files = as_files(recorder.told(), desk, probe)
    assert str(RECORDER) not in "".join(files.values())
    folder = DATA / name
    if os.environ.get("HOOKS") == "write":
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
        for file, text in files.items():
            (folder / file).write_text(text)
    kept = {file.name: file.read_text() for file in sorted(folder.glob("*.json"))}
    assert files == kept
