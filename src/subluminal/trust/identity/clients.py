"""The names by which clients are known: to MCP servers, and as programs.

The names in `clientInfo` of Claude Code, Codex, Gemini CLI, opencode and Copilot CLI were seen with
the real programs; those of Cursor and VS Code are from their users' reports.
"""

from subluminal.contracts.vocabulary import Client

_INTRODUCED = {
    "claude-code": Client.CLAUDE,
    "codex-mcp-client": Client.CODEX,
    "gemini-cli-mcp-client": Client.GEMINI,
    "opencode": Client.OPENCODE,
    "copilot-cli": Client.COPILOT,
    "github-copilot-developer": Client.COPILOT,  # before 2026
    "cursor": Client.CURSOR,
    "cursor-vscode": Client.CURSOR,
    "visual studio code": Client.VSCODE,
    "visual studio code - insiders": Client.VSCODE,
}
_VARIANTS = (
    # Older versions add the server's name.
    ("gemini-cli-mcp-client-", Client.GEMINI),
)
PROGRAMS = {
    "claude": Client.CLAUDE,
    "codex": Client.CODEX,
    "gemini": Client.GEMINI,
    "opencode": Client.OPENCODE,
    "copilot": Client.COPILOT,
    "cursor": Client.CURSOR,
    "cursor-agent": Client.CURSOR,
    "code": Client.VSCODE,
}
"""Clients by the name of their program."""


def client_named(name: str) -> Client | None:
    """Returns the client that introduces itself by this name in `clientInfo`; None if unknown."""
    words = name.strip().casefold()
    found = _INTRODUCED.get(words)
    if found is None:
        found = next((client for start, client in _VARIANTS if words.startswith(start)), None)
    return found
