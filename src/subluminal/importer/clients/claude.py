"""Claude Code: `~/.claude.json` (user scope, and local scope by project), `.mcp.json` (project)."""

import os

from subluminal.importer.clients.description import (
    Client,
    ConfigFile,
    Scene,
    project_files,
    user_file,
)


def _files(scene: Scene) -> list[ConfigFile]:
    folder = scene.environ.get("CLAUDE_CONFIG_DIR") or scene.user_home
    own = user_file(os.path.join(folder, ".claude.json"))
    return [own, *project_files(scene, ".mcp.json")]


CLAUDE = Client(
    name="claude",
    title="Claude Code",
    files=_files,
    tables=(("mcpServers",), ("projects", "*", "mcpServers")),
)
