"""The plugin of opencode, run by Node: what it sends, what it refuses, and when it fails."""

import json
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from subluminal.importer.hooks.plugin import plugin_text, recognise_plugin
from subluminal.importer.wrapper import Installation

DRIVER = """
import { pathToFileURL } from "node:url"
const { Subluminal } = await import(pathToFileURL(process.argv[2]).href)
const hooks = await Subluminal({ directory: process.cwd() })
const tell = (type, properties) => hooks.event({ event: { type, properties } })
await tell("session.created", { info: { id: "s" } })
await tell("session.created", { info: { id: "sub", parentID: "s" } })
await tell("session.idle", { sessionID: "sub" })
await tell("message.updated", {})
await hooks["chat.message"]({}, { parts: [{ type: "text", text: "do it" }] })
const input = { tool: "bash", sessionID: "s", callID: "c1" }
try {
  await hooks["tool.execute.before"](input, { args: { command: "ls" } })
  await hooks["tool.execute.after"]({ ...input, args: { command: "ls" } }, { output: "a.txt" })
  console.log("ran")
} catch (error) {
  console.log("refused: " + error.message)
}
const part = (callID) => ({ type: "tool", tool: "edit", callID, state: { status: "error", input: { path: "x" }, error: "no such file" } })
await hooks["tool.execute.before"]({ tool: "edit", sessionID: "s", callID: "c2" }, { args: { path: "x" } }).catch(() => {})
for (const id of ["c2", "c2", "c1", "c3"]) await tell("message.part.updated", { part: part(id) })
await tell("session.idle", { sessionID: "s" })
await hooks.dispose()
"""


class Plugin:
    """The plugin with a stand-in for `sub`, which notes every event that it is sent."""

    def __init__(self, folder: Path, node: Path) -> None:
        self.folder = folder
        self.node = node
        self.sub = folder / "bin" / "sub"
        self.sub.parent.mkdir()
        self.noted = folder / "events"
        self.file = folder / "subluminal.mjs"
        (folder / "driver.mjs").write_text(DRIVER)

    def run(self, answer: str) -> str:
        """Runs one call; `answer` is what the stand-in does with `tool.execute.before`."""
        script = f"""\
            #!/bin/sh
            event=$(cat)
            echo "$event" >> '{self.noted}'
            case "$event" in *tool.execute.before*) {answer};; esac
            """
        self.sub.write_text(textwrap.dedent(script))
        self.sub.chmod(0o755)
        self.file.write_text(plugin_text("opencode", Installation(str(self.sub), "/h"), None))
        return self.drive()

    def drive(self) -> str:
        """Lets Node load the plugin and make one call, as opencode does."""
        ran = subprocess.run(
            [self.node, "driver.mjs", str(self.file)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return ran.stdout.strip()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.noted.read_text().splitlines()]


@pytest.fixture
def plugin(tmp_path: Path, installed: Path) -> Plugin:
    return Plugin(tmp_path, installed / "node/node_modules/.bin/node")


def test_an_allowed_call_runs_and_its_end_is_told(plugin: Plugin) -> None:
    assert plugin.run("exit 0") == "ran"
    events = plugin.events()
    assert [each["hook_event_name"] for each in events] == [
        "session.created",
        "chat.message",
        "tool.execute.before",
        "tool.execute.after",
        "tool.execute.before",
        "tool.execute.after",
        "session.idle",
        "dispose",
    ]
    (session,) = {each["session_id"] for each in events}
    assert session.isdecimal()
    assert {each["cwd"] for each in events} == {str(plugin.folder)}
    call = {"tool_name": "bash", "tool_input": {"command": "ls"}, "call_id": "c1"}
    before, after = events[2:4]
    assert call.items() <= before.items()
    assert call.items() <= after.items()
    assert after["tool_response"] == {"output": "a.txt"}
    assert events[1]["prompt"] == "do it"
    failed = {"tool_name": "edit", "tool_input": {"path": "x"}, "call_id": "c2"}
    assert {**failed, "error": "no such file"}.items() <= events[5].items()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("""echo '{"refuse": "not here; try /tmp"}'""", "not here; try /tmp"),
        ("echo disk full >&2; exit 1", "failed, so the call is refused: disk full"),
        ("exit 3", "failed, so the call is refused: exit code 3"),
        ("kill -9 $$", "failed, so the call is refused: exit code null"),
        ("echo nonsense", "its answer is not JSON"),
    ],
)
def test_what_does_not_run(plugin: Plugin, answer: str, said: str) -> None:
    told = plugin.run(answer)
    assert told.startswith("refused: ")
    assert said in told
    assert "tool.execute.after" not in [each["hook_event_name"] for each in plugin.events()]


def test_a_missing_sub_refuses(plugin: Plugin) -> None:
    plugin.run("exit 0")
    plugin.file.write_text(plugin.file.read_text().replace(str(plugin.sub), "/nowhere/sub"))
    told = plugin.drive()
    assert "refused: subluminal: `sub hook` failed" in told
    assert "ENOENT" in told


def test_what_a_person_added_to_the_command_stays() -> None:
    text = plugin_text("opencode", Installation('/a "b"/sub', None), None)
    text = text.replace('"opencode"]', '"opencode", "--policy", "/p.yaml"]')
    found = recognise_plugin(text, "opencode")
    assert found is not None
    assert (found.program, found.policy) == ('/a "b"/sub', "/p.yaml")
    again = plugin_text("opencode", Installation("/c/sub", "/h"), found)
    words = ["/c/sub", "hook", "opencode", "--home", "/h", "--policy", "/p.yaml"]
    assert f"const COMMAND = {json.dumps(words)}\n" in again


@pytest.mark.parametrize(
    "line", ["[1, 2]", '["x"]', "[", '["/a/sub", "hook", "codex"]', '["/a/sub", "hook"]']
)
def test_other_plugins_are_not_ours(line: str) -> None:
    assert recognise_plugin(f"const COMMAND = {line}\n", "opencode") is None
