"""Every client's files and shapes: wrapped where they are, and back again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subluminal.importer.clients.description import Scene
from subluminal.importer.clients.table import CLIENTS

Write = Callable[[str, str | bytes], Path]
SHIM = ["shim", "stdio", "--server", "s"]
STDIO = {"command": "npx", "args": ["x"], "env": {"A": "1"}}
REMOTE = {"type": "http", "url": "https://x.test"}

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": (".claude.json", {"mcpServers": {"s": {"type": "stdio", **STDIO}, "r": REMOTE}}),
    "gemini": (".gemini/settings.json", {"mcpServers": {"s": {**STDIO, "trust": True}}}),
    "copilot": (
        ".copilot/mcp-config.json",
        {"mcpServers": {"s": {"type": "local", **STDIO, "tools": ["*"]}}},
    ),
    "cursor": (".cursor/mcp.json", {"mcpServers": {"s": {**STDIO, "envFile": "${x}/.env"}}}),
    "vscode": (
        ".config/Code/User/mcp.json",
        {"servers": {"s": {"type": "stdio", **STDIO}}, "inputs": [{"id": "k"}]},
    ),
    "claude-desktop": (
        ".config/Claude/claude_desktop_config.json",
        {"mcpServers": {"s": STDIO}},
    ),
}


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_clients_entries_are_wrapped_and_come_back(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv("SUB_HOME")
    path, value = SHAPES[name]
    text = json.dumps(value, indent=2)
    file = write(path, text)
    assert sub("import", name).code == 0
    servers = next(v for k, v in json.loads(file.read_text()).items() if k != "inputs")
    entry = servers["s"]
    assert entry["command"] == str(program)
    assert entry["args"] == [*SHIM, "--", "npx", "x"]
    assert entry["env"] == {"A": "1"}
    assert servers.get("r", REMOTE) == REMOTE
    assert sub("restore", name).code == 0
    assert file.read_text() == text


@pytest.mark.parametrize("version", [1, 2])
def test_opencode_keeps_command_and_arguments_in_one_list(
    sub: Any, write: Write, program: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.delenv("SUB_HOME")
    servers = {
        "s": {"type": "local", "command": ["npx", "x"], "environment": {"API_KEY": "abcdef"}},
        "r": {"type": "remote", "url": "https://x.test"},
    }
    text = json.dumps({"mcp": servers if version == 1 else {"servers": servers}}, indent="\t")
    file = write(".config/opencode/opencode.jsonc", "// mine\n" + text)
    ran = sub("import", "opencode", "--bind-secrets", "--source", "file")
    assert "moved `API_KEY` of `s`" in ran.err
    body = json.loads(file.read_text().removeprefix("// mine\n"))["mcp"]
    entry = (body if version == 1 else body["servers"])["s"]
    assert entry["command"] == [str(program), *SHIM, "--", "npx", "x"]
    assert entry["environment"] == {"API_KEY": "sub-secret:file:s.API_KEY"}
    assert sub("restore", "opencode").code == 0
    assert file.read_text() == "// mine\n" + text


def test_every_client_has_files_of_its_own(user_home: Path) -> None:
    scene = Scene({"HOME": str(user_home)}, str(user_home), "linux")
    firsts = [client.files(scene)[0].path for client in CLIENTS.values()]
    assert len(set(firsts)) == len(CLIENTS)
    assert all(path.startswith(str(user_home)) for path in firsts)


def test_desktop_programs_keep_their_files_elsewhere_on_macos(user_home: Path) -> None:
    scene = Scene({"HOME": "/Users/me"}, "/", "darwin")
    (file,) = CLIENTS["claude-desktop"].files(scene)
    folder = "/Users/me/Library/Application Support/Claude"
    assert file.path == f"{folder}/claude_desktop_config.json"


def test_a_file_that_two_clients_read_is_wrapped_once(
    sub: Any, write: Write, program: Path
) -> None:
    text = '{"mcpServers": {"s": {"command": "x"}}}'
    file = write(".mcp.json", text)
    assert sub("import").code == 0
    assert file.read_text().count("shim") == 1
    assert sub("restore").code == 0
    assert file.read_text() == text
