"""How each client is configured, started and read. No other file differs by client."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.clients import Programs
from tests.e2e.desk import Agent, Desk
from tests.e2e.fake_model import FakeModel

Servers = dict[str, list[str]]
"""Servers: name and command line."""


class Kind(NamedTuple):
    """One client."""

    name: str
    config: str
    """path of the configuration below the home"""
    write_config: Callable[[Desk, FakeModel, Servers], Path]
    command: Callable[[Programs, FakeModel], list[str]]
    env: Callable[[FakeModel], dict[str, str]]
    session_of: Callable[[str], str]
    """finds the client's session id in its output"""

    def start(self, desk: Desk, programs: Programs, model: FakeModel, *prefix: str) -> Agent:
        """Starts an agent, behind another command if one is given."""
        return desk.start([*prefix, *self.command(programs, model)], self.env(model))


def _write_claude(desk: Desk, _: FakeModel, servers: Servers) -> Path:
    entries: dict[str, Any] = {
        name: {"type": "stdio", "command": words[0], "args": words[1:], "env": {}}
        for name, words in servers.items()
    }
    path = desk.home / ".claude.json"
    settings = {"hasCompletedOnboarding": True, "mcpServers": entries, "mine": {"kept": [1, 2]}}
    path.write_text(json.dumps(settings, indent=4))
    path.chmod(0o600)
    return path


def _claude_env(model: FakeModel) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _claude_command(programs: Programs, model: FakeModel) -> list[str]:
    servers = sorted({call.server for call in model.script})
    allowed = ",".join(f"mcp__{server}__*" for server in servers)
    command = [str(programs.claude), "-p", "use the tools", "--output-format", "json"]
    return [*command, "--permission-mode", "dontAsk", "--allowedTools", allowed]


def _write_codex(desk: Desk, model: FakeModel, servers: Servers) -> Path:
    path = desk.home / ".codex" / "config.toml"
    path.parent.mkdir()
    lines = [
        "# mine",
        'model = "gpt-5.5"',
        'model_provider = "fake"',
        "[model_providers.fake]",
        'name = "fake"',
        f'base_url = "{model.url}/v1"',
        'wire_api = "responses"',
        'env_key = "FAKE_KEY"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
    ]
    for name, words in servers.items():
        lines += ["", f"[mcp_servers.{name}] # kept", f"command = {json.dumps(words[0])}"]
        lines += [f"args = {json.dumps(words[1:])}", "required = true # wait for it"]
        lines += ['default_tools_approval_mode = "approve"', "startup_timeout_sec = 60"]
    path.write_text("\n".join(lines) + "\n")
    return path


def _codex_command(programs: Programs, _: FakeModel) -> list[str]:
    words = ["exec", "--strict-config", "--json", "--skip-git-repo-check", "use the tools"]
    return [str(programs.codex), *words]


def _codex_session(out: str) -> str:
    events = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return next(str(e["thread_id"]) for e in events if e["type"] == "thread.started")


CLAUDE = Kind(
    "claude",
    ".claude.json",
    _write_claude,
    _claude_command,
    _claude_env,
    lambda out: str(json.loads(out)["session_id"]),
)
CODEX = Kind(
    "codex",
    ".codex/config.toml",
    _write_codex,
    _codex_command,
    lambda _: {"FAKE_KEY": "k"},
    _codex_session,
)
KINDS = {kind.name: kind for kind in (CLAUDE, CODEX)}
