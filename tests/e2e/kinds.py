"""How each client is configured, started and read. No other file differs by client."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.clients import Programs
from tests.e2e.desk import Agent, Desk
from tests.e2e.dialects import ToolCall
from tests.e2e.fake_model import FakeModel

Servers = dict[str, list[str] | str]
"""Servers by name: a command line, or the URL of a remote server."""
KEY = "no-key-of-any-model"
PROMPT = "use the tools"


class Tools(NamedTuple):
    """Tools of the client itself."""

    shell: Callable[[str], ToolCall]
    """runs a command line"""
    write: Callable[[Path, str], ToolCall]
    """writes a new file"""


class Kind(NamedTuple):
    """One client."""

    name: str
    config: str
    """path of the configuration below the home"""
    write_config: Callable[[Desk, FakeModel, Servers], Path]
    command: Callable[[Programs, FakeModel], list[str]]
    env: Callable[[Programs, FakeModel], dict[str, str]]
    session_of: Callable[[str], str]
    """finds the client's session id in its output"""
    tools: Tools

    def start(
        self,
        desk: Desk,
        programs: Programs,
        model: FakeModel,
        *prefix: str,
        options: tuple[str, ...] = (),
    ) -> Agent:
        """Starts an agent, behind another command if one is given, with more options if given."""
        command = [*prefix, *self.command(programs, model), *options]
        return desk.start(command, self.env(programs, model))


def _write(desk: Desk, path: str, settings: dict[str, Any]) -> Path:
    file = desk.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings, indent=4))
    return file


def _own_tools(model: FakeModel) -> list[str]:
    steps = [step for step in model.steps() if isinstance(step, ToolCall)]
    return sorted({step.tool for step in steps if not step.server})


def _json_lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


# Claude Code


def _write_claude(desk: Desk, _: FakeModel, servers: Servers) -> Path:
    entries: dict[str, Any] = {
        name: {"type": "http", "url": words}
        if isinstance(words, str)
        else {"type": "stdio", "command": words[0], "args": words[1:], "env": {}}
        for name, words in servers.items()
    }
    settings = {"hasCompletedOnboarding": True, "mcpServers": entries, "mine": {"kept": [1, 2]}}
    path = _write(desk, ".claude.json", settings)
    path.chmod(0o600)
    return path


def _claude_env(_: Programs, model: FakeModel) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",  # root may then use every permission mode
    }


def _claude_command(programs: Programs, model: FakeModel) -> list[str]:
    servers = sorted({step.server for step in model.steps() if step.server})
    allowed = ",".join([*(f"mcp__{server}__*" for server in servers), *_own_tools(model)])
    command = [str(programs.claude), "-p", PROMPT, "--output-format", "json"]
    return [*command, "--permission-mode", "dontAsk", "--allowedTools", allowed]


CLAUDE = Kind(
    "claude",
    ".claude.json",
    _write_claude,
    _claude_command,
    _claude_env,
    lambda out: str(json.loads(out)["session_id"]),
    Tools(
        lambda line: ToolCall("", "Bash", {"command": line, "description": "as told"}),
        lambda path, text: ToolCall("", "Write", {"file_path": str(path), "content": text}),
    ),
)


# Codex


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
        lines += ["", f"[mcp_servers.{name}] # kept"]
        if isinstance(words, str):
            lines += [f"url = {json.dumps(words)}"]
        else:
            lines += [f"command = {json.dumps(words[0])}", f"args = {json.dumps(words[1:])}"]
        lines += ["required = true # wait for it"]
        lines += ['default_tools_approval_mode = "approve"', "startup_timeout_sec = 60"]
    path.write_text("\n".join(lines) + "\n")
    return path


def _codex_command(programs: Programs, model: FakeModel) -> list[str]:
    words = ["exec", "--strict-config", "--json", "--skip-git-repo-check"]
    if _own_tools(model):
        # Its sandbox needs more rights than a container gives. Without it, Codex notes in its
        # configuration that it trusts a repository: only tests that need it do without.
        words += ["--sandbox", "danger-full-access"]
    return [str(programs.codex), *words, PROMPT]


def _codex_session(out: str) -> str:
    return next(str(e["thread_id"]) for e in _json_lines(out) if e["type"] == "thread.started")


def _patch(path: Path, text: str) -> ToolCall:
    added = "".join(f"+{line}\n" for line in text.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"
    return ToolCall("", "apply_patch", {"input": patch})


CODEX = Kind(
    "codex",
    ".codex/config.toml",
    _write_codex,
    _codex_command,
    lambda *_: {"FAKE_KEY": KEY},
    _codex_session,
    Tools(lambda line: ToolCall("", "exec_command", {"cmd": line}), _patch),
)


# Gemini CLI


def _write_gemini(desk: Desk, _: FakeModel, servers: Servers) -> Path:
    entries = {
        name: {"type": "http", "url": words}
        if isinstance(words, str)
        else {"command": words[0], "args": words[1:]}
        for name, words in servers.items()
    }
    settings = {
        "mcpServers": entries,
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    return _write(desk, ".gemini/settings.json", settings)


def _gemini_command(programs: Programs, _: FakeModel) -> list[str]:
    # Without a model it asks another model first which one to use.
    words = ["--model", "gemini-3-pro-preview", "--approval-mode", "yolo", "--skip-trust"]
    return ["node", str(programs.gemini), *words, "--output-format", "json", "--prompt", PROMPT]


def _gemini_env(_: Programs, model: FakeModel) -> dict[str, str]:
    env = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": model.url}
    # It would start itself again with more memory, and be a launcher.
    return {**env, "GEMINI_CLI_NO_RELAUNCH": "true", "TERM": "xterm-256color"}


GEMINI = Kind(
    "gemini",
    ".gemini/settings.json",
    _write_gemini,
    _gemini_command,
    _gemini_env,
    lambda out: str(json.loads(out)["session_id"]),
    Tools(
        lambda line: ToolCall("", "run_shell_command", {"command": line}),
        lambda path, text: ToolCall("", "write_file", {"file_path": str(path), "content": text}),
    ),
)


# Copilot CLI


def _write_copilot(desk: Desk, _: FakeModel, servers: Servers) -> Path:
    entries = {
        name: {"type": "http", "url": words, "tools": ["*"]}
        if isinstance(words, str)
        else {"type": "local", "command": words[0], "args": words[1:], "tools": ["*"]}
        for name, words in servers.items()
    }
    return _write(desk, ".copilot/mcp-config.json", {"mcpServers": entries})


def _copilot_command(programs: Programs, _: FakeModel) -> list[str]:
    words = ["--allow-all-tools", "--allow-all-paths", "--no-auto-update"]
    return [str(programs.copilot), *words, "--output-format", "json", "--prompt", PROMPT]


def _copilot_env(programs: Programs, model: FakeModel) -> dict[str, str]:
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "fake-model",
        "XDG_CACHE_HOME": str(programs.cache),
    }


def _copilot_session(out: str) -> str:
    return next(str(e["sessionId"]) for e in _json_lines(out) if e["type"] == "result")


COPILOT = Kind(
    "copilot",
    ".copilot/mcp-config.json",
    _write_copilot,
    _copilot_command,
    _copilot_env,
    _copilot_session,
    Tools(
        lambda line: ToolCall("", "bash", {"command": line, "description": "as told"}),
        lambda path, text: ToolCall("", "create", {"path": str(path), "file_text": text}),
    ),
)


# opencode

OPENCODE_PLUGINS = ("@opencode-ai/plugin", "1.18.33")
"""A package that opencode installs beside its configuration once there is a plugin."""


def _write_opencode(desk: Desk, model: FakeModel, servers: Servers) -> Path:
    entries = {
        name: {"type": "remote", "url": words, "oauth": False}
        if isinstance(words, str)
        else {"type": "local", "command": words}
        for name, words in servers.items()
    }
    options = {"baseURL": f"{model.url}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options}
    settings = {
        "mcp": entries,
        "autoupdate": False,
        "share": "disabled",
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "provider": {"fake": {**provider, "models": {"fake-model": {}}}},
    }
    _pretend_installed(desk)
    return _write(desk, ".config/opencode/opencode.json", settings)


def _pretend_installed(desk: Desk) -> None:
    """Keeps opencode from npm. Only plugins in TypeScript import that package."""
    folder = ".config/opencode"
    package, version = OPENCODE_PLUGINS
    wanted = {"dependencies": {package: version}}
    locked = {"": wanted, f"node_modules/{package}": {"version": version}}
    lock = {"lockfileVersion": 3, "requires": True, "packages": locked}
    _write(desk, f"{folder}/package.json", wanted)
    _write(desk, f"{folder}/package-lock.json", lock)
    installed = f"{folder}/node_modules/{package}/package.json"
    _write(desk, installed, {"name": package, "version": version})


def _opencode_env(*_: object) -> dict[str, str]:
    parts = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {f"OPENCODE_DISABLE_{part}": "1" for part in parts}


OPENCODE = Kind(
    "opencode",
    ".config/opencode/opencode.json",
    _write_opencode,
    lambda programs, _: [str(programs.opencode), "run", "--format", "json", PROMPT],
    _opencode_env,
    lambda out: str(_json_lines(out)[0]["sessionID"]),
    Tools(
        lambda line: ToolCall("", "bash", {"command": line, "description": "as told"}),
        lambda path, text: ToolCall("", "write", {"filePath": str(path), "content": text}),
    ),
)

KINDS = {kind.name: kind for kind in (CLAUDE, CODEX)}
ALL_KINDS = {kind.name: kind for kind in (CLAUDE, CODEX, GEMINI, COPILOT, OPENCODE)}
