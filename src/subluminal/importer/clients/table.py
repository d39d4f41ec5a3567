"""Every client that can be imported, by the name that `sub import` takes.

Each client is a few facts: where its files are, where its servers stand in them, and what an entry
looks like. Cursor, VS Code and Claude Desktop are known from their documentation only.
"""

import os
import tomllib

from subluminal.config.plain_files import plain_file
from subluminal.importer.clients.description import (
    Client,
    ConfigFile,
    FailClosed,
    HookForm,
    HookShape,
    Scene,
    Shape,
    project_files,
    shared_files,
    user_file,
)
from subluminal.importer.text.notation import TOML

_SERVERS = (("mcpServers",),)


def _claude_files(scene: Scene) -> list[ConfigFile]:
    """User and local scope are in `~/.claude.json`, project scope in `.mcp.json`."""
    folder = scene.environ.get("CLAUDE_CONFIG_DIR") or scene.user_home
    own = user_file(os.path.join(folder, ".claude.json"))
    return [own, *project_files(scene, ".mcp.json")]


def _claude_folder(scene: Scene) -> str:
    return scene.environ.get("CLAUDE_CONFIG_DIR") or scene.in_home(".claude")


def _claude_settings(scene: Scene) -> list[str]:
    """Settings of a project, whose `env` Claude Code sets for everything that it starts."""
    names = [os.path.join(".claude", name) for name in ("settings.json", "settings.local.json")]
    return shared_files(scene, *names)


def _claude_reads_too(scene: Scene) -> list[str]:
    """Claude Code reads `.mcp.json` in every directory above, also above the repository."""
    own = scene.project_folders()
    return [os.path.join(each, ".mcp.json") for each in scene.folders_above() if each not in own]


CLAUDE = Client(
    name="claude",
    title="Claude Code",
    files=_claude_files,
    tables=(("mcpServers",), ("projects", "*", "mcpServers")),
    variable_files=_claude_settings,
    reads_too=_claude_reads_too,
    hooks=HookShape(
        _claude_folder,
        "settings.json",
        events=(
            *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
            *("PostToolUseFailure", "Stop", "SessionEnd"),
        ),
        decides="PreToolUse",
        fail_closed=FailClosed.MEMBER,
    ),
)


def _codex_files(scene: Scene) -> list[ConfigFile]:
    """`config.toml` and profiles in CODEX_HOME, and `.codex/config.toml` of trusted projects."""
    home = _codex_home(scene)
    main = os.path.join(home, "config.toml")
    return [user_file(main), *_codex_profiles(home), *_codex_project_files(scene, main)]


def _codex_home(scene: Scene) -> str:
    return scene.environ.get("CODEX_HOME") or scene.in_home(".codex")


def _codex_profiles(home: str) -> list[ConfigFile]:
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return []
    return [user_file(os.path.join(home, name)) for name in names if name.endswith(".config.toml")]


def _codex_project_files(scene: Scene, main: str) -> list[ConfigFile]:
    """Codex reads a project's file only if the user's file says `trust_level = "trusted"`."""
    trusted = _codex_trusted_folders(main)
    folders = scene.project_folders()
    if not trusted.intersection((folders[0], folders[-1])):
        return []
    return project_files(scene, os.path.join(".codex", "config.toml"))


def _codex_trusted_folders(main: str) -> set[str]:
    try:
        with open(main, encoding="utf-8-sig", opener=plain_file) as file:
            projects = tomllib.loads(file.read()).get("projects", {})
        return {p for p, settings in projects.items() if settings.get("trust_level") == "trusted"}
    except (OSError, ValueError, RecursionError, AttributeError):
        return set()  # problems are reported when the file is read as a configuration


# Codex starts servers with a cleared environment, and refuses keys that it does not know.
CODEX = Client(
    name="codex",
    title="Codex",
    files=_codex_files,
    tables=(("mcp_servers",),),
    notation=TOML,
    shape=Shape(env_vars_key="env_vars"),
    hooks=HookShape(
        _codex_home,
        "hooks.json",
        events=(
            *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
            *("Stop", "Interrupt", "SessionEnd"),
        ),
        decides="PreToolUse",
        # Codex allows these two no more, and complains if more is asked for.
        shorter={"Interrupt": 3, "SessionEnd": 3},
    ),
)


def _gemini_files(scene: Scene) -> list[ConfigFile]:
    name = os.path.join(".gemini", "settings.json")
    return [user_file(scene.in_home(name)), *project_files(scene, name)]


def _gemini_variables(scene: Scene) -> list[str]:
    """Gemini CLI loads these files of a project into its own environment."""
    return shared_files(scene, os.path.join(".gemini", ".env"), ".env")


GEMINI = Client(
    "gemini",
    "Gemini CLI",
    _gemini_files,
    _SERVERS,
    variable_files=_gemini_variables,
    hooks=HookShape(
        lambda scene: scene.in_home(".gemini"),
        "settings.json",
        events=(
            *("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool"),
            *("AfterAgent", "SessionEnd"),
        ),
        decides="BeforeTool",
        timeout=("timeout", 10_000),
        beside_servers=True,
    ),
)


def _opencode_files(scene: Scene) -> list[ConfigFile]:
    names = ("opencode.json", "opencode.jsonc")
    below = [os.path.join(".opencode", name) for name in names]
    own = [user_file(scene.in_config("opencode", name)) for name in names]
    return [*own, *project_files(scene, *names, *below)]


OPENCODE = Client(
    "opencode",
    "opencode",
    _opencode_files,
    (("mcp",), ("mcp", "servers")),
    shape=Shape(command_is_list=True, env_key="environment"),
    not_servers=frozenset({"servers"}),
    hooks=HookShape(
        lambda scene: scene.in_config("opencode"),
        os.path.join("plugin", "subluminal.js"),
        events=(
            *("session.created", "chat.message", "tool.execute.before", "tool.execute.after"),
            *("session.idle", "dispose"),
        ),
        decides="tool.execute.before",
        form=HookForm.PLUGIN,
        fail_closed=FailClosed.ALWAYS,
    ),
)


def _copilot_home(scene: Scene) -> str:
    return scene.environ.get("COPILOT_HOME") or scene.in_home(".copilot")


def _copilot_files(scene: Scene) -> list[ConfigFile]:
    own = user_file(os.path.join(_copilot_home(scene), "mcp-config.json"))
    return [own, *project_files(scene, ".mcp.json", os.path.join(".github", "mcp.json"))]


COPILOT = Client(
    "copilot",
    "GitHub Copilot CLI",
    _copilot_files,
    _SERVERS,
    hooks=HookShape(
        _copilot_home,
        os.path.join("hooks", "subluminal.json"),
        events=(
            *("sessionStart", "userPromptSubmitted", "preToolUse", "postToolUse"),
            *("postToolUseFailure", "agentStop", "sessionEnd"),
        ),
        decides="preToolUse",
        form=HookForm.FLAT,
        fail_closed=FailClosed.ALWAYS,
        command_key="bash",
        timeout=("timeoutSec", 10),
        header=(("version", 1),),
    ),
)


def _cursor_files(scene: Scene) -> list[ConfigFile]:
    name = os.path.join(".cursor", "mcp.json")
    return [user_file(scene.in_home(name)), *project_files(scene, name)]


CURSOR = Client("cursor", "Cursor", _cursor_files, _SERVERS)


def _vscode_files(scene: Scene) -> list[ConfigFile]:
    own = user_file(scene.in_app_support("Code", "User", "mcp.json"))
    return [own, *project_files(scene, os.path.join(".vscode", "mcp.json"))]


VSCODE = Client("vscode", "VS Code", _vscode_files, (("servers",),))


def _desktop_files(scene: Scene) -> list[ConfigFile]:
    return [user_file(scene.in_app_support("Claude", "claude_desktop_config.json"))]


CLAUDE_DESKTOP = Client("claude-desktop", "Claude Desktop", _desktop_files, _SERVERS)

CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (CLAUDE, CODEX, GEMINI, OPENCODE, COPILOT, CURSOR, VSCODE, CLAUDE_DESKTOP)
}
