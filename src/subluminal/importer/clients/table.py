"""Every client that can be imported, by the name that `sub import` takes."""

from subluminal.importer.clients.claude import CLAUDE
from subluminal.importer.clients.codex import CODEX
from subluminal.importer.clients.description import Client
from subluminal.importer.clients.others import (
    CLAUDE_DESKTOP,
    COPILOT,
    CURSOR,
    GEMINI,
    OPENCODE,
    VSCODE,
)

CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (CLAUDE, CODEX, GEMINI, OPENCODE, COPILOT, CURSOR, VSCODE, CLAUDE_DESKTOP)
}
