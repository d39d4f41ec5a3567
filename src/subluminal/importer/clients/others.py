"""Clients whose description is a few paths: Gemini CLI, opencode, Copilot CLI, Cursor, VS Code, and
Claude Desktop. Cursor, VS Code and Claude Desktop are known from their documentation only.
"""

import os

from subluminal.importer.clients.description import (
    Client,
    ConfigFile,
    Scene,
    Shape,
    project_files,
    user_file,
)


def _gemini_files(scene: Scene) -> list[ConfigFile]:
    name = os.path.join(".gemini", "settings.json")
    return [user_file(scene.in_home(name)), *project_files(scene, name)]


def _opencode_files(scene: Scene) -> list[ConfigFile]:
    names = ("opencode.json", "opencode.jsonc")
    below = [os.path.join(".opencode", name) for name in names]
    own = [user_file(scene.in_config("opencode", name)) for name in names]
    return [*own, *project_files(scene, *names, *below)]


def _copilot_files(scene: Scene) -> list[ConfigFile]:
    folder = scene.environ.get("COPILOT_HOME") or scene.in_home(".copilot")
    own = user_file(os.path.join(folder, "mcp-config.json"))
    return [own, *project_files(scene, ".mcp.json", os.path.join(".github", "mcp.json"))]


def _cursor_files(scene: Scene) -> list[ConfigFile]:
    name = os.path.join(".cursor", "mcp.json")
    return [user_file(scene.in_home(name)), *project_files(scene, name)]


def _vscode_files(scene: Scene) -> list[ConfigFile]:
    own = user_file(scene.in_app_support("Code", "User", "mcp.json"))
    return [own, *project_files(scene, os.path.join(".vscode", "mcp.json"))]


def _desktop_files(scene: Scene) -> list[ConfigFile]:
    return [user_file(scene.in_app_support("Claude", "claude_desktop_config.json"))]


GEMINI = Client("gemini", "Gemini CLI", _gemini_files, (("mcpServers",),))
OPENCODE = Client(
    "opencode",
    "opencode",
    _opencode_files,
    (("mcp",), ("mcp", "servers")),
    shape=Shape(command_is_list=True, env_key="environment"),
    not_servers=frozenset({"servers"}),
)
COPILOT = Client("copilot", "GitHub Copilot CLI", _copilot_files, (("mcpServers",),))
CURSOR = Client("cursor", "Cursor", _cursor_files, (("mcpServers",),))
VSCODE = Client("vscode", "VS Code", _vscode_files, (("servers",),))
CLAUDE_DESKTOP = Client("claude-desktop", "Claude Desktop", _desktop_files, (("mcpServers",),))
