"""Sessions that were recorded with the real clients (`tests/data/hooks`), through the door.

In each session a shell command succeeds, one fails and one is refused by the recording hook, a file
is written, and MCP tools succeed and fail, over stdio (`near`) and HTTP (`far`).
"""

import json
import pathlib

import pytest
from tests.hooks.shapes import SHAPES

from subluminal.canonical import args_hash

DATA = pathlib.Path(__file__).parents[1] / "data" / "hooks"
NEAR = [("near", "echo", "OK"), ("near", "fail", "ERROR"), ("near", "break", "ERROR")]
FAR = [("far", "echo", "OK")]
EXPECTED = {
    "claude": [
        ("@claude", "Bash", "OK"),
        ("@claude", "Bash", "ERROR"),
        ("@claude", "Bash", "CANCELLED"),
        ("@claude", "Write", "OK"),
        *NEAR,
        *FAR,
    ],
    # Codex has no event after a call that failed, and does not tell a command's exit code.
    "codex": [
        ("@codex", "Bash", "OK"),
        ("@codex", "Bash", "OK"),
        ("@codex", "Bash", "CANCELLED"),
        ("@codex", "apply_patch", "OK"),
        ("near", "echo", "OK"),
        ("near", "fail", "CANCELLED"),
        ("near", "break", "CANCELLED"),
        *FAR,
    ],
    "gemini": [
        ("@gemini", "run_shell_command", "OK"),
        ("@gemini", "run_shell_command", "OK"),
        ("@gemini", "run_shell_command", "CANCELLED"),
        ("@gemini", "write_file", "OK"),
        *NEAR,
        *FAR,
    ],
    "copilot": [
        ("@copilot", "bash", "OK"),
        ("@copilot", "bash", "OK"),
        ("@copilot", "bash", "CANCELLED"),
        ("@copilot", "create", "OK"),
        *NEAR,
        *FAR,
    ],
    "opencode": [
        ("@opencode", "bash", "OK"),
        ("@opencode", "bash", "OK"),
        ("@opencode", "bash", "ERROR"),
        ("@opencode", "write", "OK"),
        *NEAR,
        *FAR,
    ],
}
CONFIGURED = {
    ".copilot/mcp-config.json": {"mcpServers": {"near": {"command": "x"}, "far": {"url": "u"}}},
    ".config/opencode/opencode.json": {
        "mcp": {
            "near": {"type": "local", "command": ["x"]},
            "far": {"type": "remote", "url": "http://u"},
        }
    },
}


def recorded(client):
    """Returns the events of a session: the name of each, and its JSON."""
    for path in sorted((DATA / client).glob("*.json")):
        event = json.loads(path.read_text())
        yield path.stem.partition("-")[2], event


def as_our_plugin_tells(events):
    """Returns opencode's events as `importer/hooks/opencode.js` passes them on."""
    for name, event in events:
        told, given = {}, event.get("input", {})
        part = event.get("properties", {}).get("part", {})
        if name == "tool.execute.before":
            args = event["output"]["args"]
            told = {"tool_name": given["tool"], "tool_input": args, "call_id": given["callID"]}
        elif name == "tool.execute.after":
            told = {"tool_name": given["tool"], "tool_input": given["args"]}
            told |= {"call_id": given["callID"], "tool_response": event["output"]}
        elif name == "chat.message":
            told = {"prompt": "".join(each.get("text", "") for each in event["output"]["parts"])}
        elif name == "event" and part.get("state", {}).get("status") == "error":
            name, state = "tool.execute.after", part["state"]
            told = {"tool_name": part["tool"], "tool_input": state["input"]}
            told |= {"call_id": part["callID"], "error": state["error"]}
        elif name == "event":
            name = event["type"]
        yield name, {"session_id": "7", "hook_event_name": name, "cwd": "/project", **told}


@pytest.fixture
def environment(household):
    home = household.tmp_path / "person"
    for name, content in CONFIGURED.items():
        path = home / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content))
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


@pytest.mark.parametrize("client", SHAPES)
def test_a_recorded_session(start, household, person, environment, client):
    agent = start(client, session="ID", **environment)
    events = list(recorded(client))
    if client == "opencode":
        events = list(as_our_plugin_tells(events))
    hashes = []
    for name, event in events:
        given = {agent.shape.session: "ID"} if client != "opencode" else {}
        said = agent.send(json.dumps({**event, **given}), event=name if client == "copilot" else "")
        assert said().is_nothing, (name, event)
        if name == agent.shape.before:
            hashes.append(args_hash(event[agent.shape.args]))
    household.wait_event("run_end")
    starts = [event["call"] for event in household.events("tool_call_start")]
    ends = {e["call"]["call_id"]: e["status"] for e in household.events("tool_call_end")}
    assert [
        (call["server_name"], call["tool_name"], ends[call["call_id"]]) for call in starts
    ] == EXPECTED[client]
    assert [call["args_hash"] for call in starts] == hashes
    runs = {event["run_id"] for event in household.events()}
    assert len(runs) == 1
    assert runs == {"ID"} or client in ("gemini", "opencode"), "there the process is the run"
    _prompts_are_nowhere(household, client, events)
    person("query", "runs")
    person("ledger", "verify")
    person("ledgerd", "stop")


def _prompts_are_nowhere(household, client, events):
    prompts = {str(event["prompt"]) for _, event in events if event.get("prompt")}
    assert prompts, "the session has a prompt"
    for path in household.home.rglob("*"):
        if path.is_file():
            assert not any(prompt.encode() in path.read_bytes() for prompt in prompts), path
