"""`sub run` and the real clients: a server that no shim spoke for is named, and fails a strict run."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.e2e.clients import Programs
from tests.e2e.desk import SUB, Desk, of_type
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel
from tests.e2e.kinds import CLAUDE, Kind

Model = Callable[..., FakeModel]
POLICY = """\
policy_id: house
version: "1"
mode: guardrails
defaults: {decision_on_error: BLOCK}
selectors: {}
rules: []
"""


def add_server(kind: Kind, config: Path, name: str, command: list[str]) -> None:
    """Adds a server to a configuration that was imported."""
    if kind is CLAUDE:
        whole = json.loads(config.read_text())
        whole["mcpServers"][name] = {"command": command[0], "args": command[1:]}
        # Servers of other projects, and one that the person switched off.
        whole["projects"] = {
            "/elsewhere": {"mcpServers": {"other": {"command": "x"}}},
            str(config.parents[1] / "project"): {"disabledMcpServers": ["off"]},
        }
        whole["mcpServers"]["off"] = {"command": "x"}
        config.write_text(json.dumps(whole))
        return
    lines = [f"[mcp_servers.{name}]", f"command = {json.dumps(command[0])}"]
    lines += [f"args = {json.dumps(command[1:])}"]
    lines += ["[mcp_servers.off]", 'command = "x"', "enabled = false"]
    config.write_text(config.read_text() + "\n".join(lines) + "\n")


def test_a_strict_run_in_which_every_server_is_seen(
    kind: Kind, desk: Desk, programs: Programs, fs: list[str], model: Model
) -> None:
    fake = model([ToolCall("fs", "read_text_file", {"path": str(desk.project / "a.txt")})])
    kind.write_config(desk, fake, {"fs": fs})
    desk.policy(POLICY)
    desk.sub("import", kind.name, "--yes", "--no-hooks")
    agent = kind.start(desk, programs, fake, str(SUB), "run", "--strict", "--")
    assert agent.wait() == 0, agent.said
    assert "the run kept to its policy\n" in agent.said
    ((_, events),) = desk.runs().items()
    (start,) = of_type(events, "run_start")
    assert start["run"]["meta"]["servers"] == ["fs"]


def test_a_server_outside_the_run_fails_it(
    kind: Kind, desk: Desk, programs: Programs, fs: list[str], model: Model
) -> None:
    fake = model([ToolCall("fs", "read_text_file", {"path": str(desk.project / "a.txt")})])
    config = kind.write_config(desk, fake, {"fs": fs})
    desk.policy(POLICY)
    desk.sub("import", kind.name, "--yes", "--no-hooks")
    add_server(kind, config, "late", fs)
    agent = kind.start(desk, programs, fake, str(SUB), "run", "--strict", "--")
    assert agent.wait() == 3, agent.said
    assert "warning: 1 of 2 servers wrapped; calls to `late` will not be seen" in agent.said
    assert "error: this run violated policy: 1 server not seen" in agent.said
    assert "  late: not wrapped\n" in agent.said
    allowed = ("run", "--strict", "--allow-silent", "late", "--")
    agent = kind.start(desk, programs, fake, str(SUB), *allowed)
    assert agent.wait() == 0, agent.said


def test_nothing_imported(
    kind: Kind, desk: Desk, programs: Programs, fs: list[str], model: Model
) -> None:
    fake = model([ToolCall("fs", "read_text_file", {"path": str(desk.project / "a.txt")})])
    kind.write_config(desk, fake, {"fs": fs})
    agent = kind.start(desk, programs, fake, str(SUB), "run", "--")
    assert agent.wait() == 0, agent.said
    assert "warning: 0 of 1 server wrapped; calls to `fs` will not be seen\n" in agent.said
    assert f"hint: wrap them with `sub import {kind.name}`\n" in agent.said
    assert "warning: not seen in this run: `fs` (not wrapped)\n" in agent.said
