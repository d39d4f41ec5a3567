"""Which client a command starts, and what its words say about servers."""

import pytest

from subluminal.importer.clients.table import CLIENTS
from subluminal.importer.command_line import (
    PROGRAMS,
    Options,
    Started,
    find_client,
    read_options,
)


def test_every_client_has_a_program() -> None:
    assert set(PROGRAMS.values()) == set(CLIENTS)


@pytest.mark.parametrize(
    ("command", "client", "words"),
    [
        (["claude", "-p", "x"], "claude", ["-p", "x"]),
        (["/opt/bin/codex", "exec", "x"], "codex", ["exec", "x"]),
        (["npx", "-y", "@anthropic-ai/claude-code@latest", "-p"], "claude", ["-p"]),
        (["env", "A=1", "timeout", "-k", "5", "10m", "gemini"], "gemini", []),
        (["sh", "-c", "claude -p 'a b'"], "claude", ["-p", "a b"]),
        (["bash", "-ec", "cd x && A=1 codex exec y | tee log"], "codex", ["exec", "y"]),
        (["sh", "-c", "make\n\nexec claude\n"], "claude", []),
        (["sh", "-c", "(claude -p x); true"], "claude", ["-p", "x"]),
        (["code", "."], "vscode", ["."]),
    ],
    ids=str,
)
def test_a_client_is_found(command: list[str], client: str, words: list[str]) -> None:
    assert find_client(command) == Started(client, words)


@pytest.mark.parametrize(
    "command",
    [
        ["true"],
        ["./agent", "claude"],
        ["echo", "claude"],
        ["sh", "script.sh"],
        ["sh", "-c"],
        ["sh", "-c", ""],
        ["sh", "-c", "echo claude; ls"],
        ["sh", "-c", "echo 'unclosed"],
        ["env"],
        ["env", "-i", "A=1"],
        [""],
    ],
    ids=str,
)
def test_no_client_is_found(command: list[str]) -> None:
    assert find_client(command) is None


def options(client: str, *words: str) -> Options:
    return read_options(Started(client, list(words)))


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("claude", ["--version"]),
        ("claude", ["mcp", "list"]),
        ("codex", ["login"]),
        ("gemini", ["--help"]),
    ],
    ids=str,
)
def test_no_agent_is_started(client: str, words: list[str]) -> None:
    assert not options(client, *words).starts_agent


@pytest.mark.parametrize("words", [[], ["-p", "mcp"], ["explain mcp"]], ids=str)
def test_an_agent_is_started(words: list[str]) -> None:
    assert options("claude", *words).starts_agent


def test_claude_takes_files_and_texts() -> None:
    text = '{"mcpServers": {}}'
    found = options("claude", "--mcp-config", "a.json", text, "-p", "x", "--mcp-config=b.json")
    assert found == Options(files=("a.json", "b.json"), texts=(text,))


@pytest.mark.parametrize(
    ("words", "scopes"),
    [
        (["--strict-mcp-config"], set()),
        (["--bare"], set()),
        (["--safe-mode"], set()),
        (["--setting-sources", "user,local"], {"user", "local"}),
    ],
    ids=lambda value: " ".join(sorted(value)) or "none",
)
def test_claude_leaves_scopes_out(words: list[str], scopes: set[str]) -> None:
    assert options("claude", *words).scopes == scopes


def test_codex() -> None:
    found = options(
        *("codex", "exec", "-p", "work", "-C", "sub", "-c", "model=o3"),
        *("-c", "mcp_servers.a.command=npx", "-c", 'mcp_servers.a.args=["x"]'),
        *("--config", "mcp_servers.b.enabled=false"),
    )
    text = (
        'mcp_servers.a.command = "npx"\nmcp_servers.a.args = ["x"]\nmcp_servers.b.enabled = false\n'
    )
    assert found == Options(texts=(text,), profile="work", cwd="sub")
    assert options("codex", "exec", "--ignore-user-config").scopes == {"project"}
