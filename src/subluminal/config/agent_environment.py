"""Recognises commands that an agent started, and refuses what only a person may do
(local-is-not-trusted).

The agent runs as the same user, so this stops habits and mistakes, not a determined attacker.
docs/concepts/agents-with-a-shell.md says what does.
"""

from collections.abc import Mapping
from typing import NamedTuple

from subluminal.config import env
from subluminal.errors import SubluminalError


class Marker(NamedTuple):
    """A variable that an agent's client sets for the programs it starts."""

    name: str
    client: str


MARKERS = (
    Marker(env.SUB_RUN_ID.name, "a run of `sub run`"),
    Marker("CLAUDECODE", "Claude Code"),
    Marker("CLAUDE_CODE_SESSION_ID", "Claude Code"),
    Marker("CLAUDE_CODE_ENTRYPOINT", "Claude Code"),
    Marker("CODEX_SANDBOX", "Codex"),
    Marker("CODEX_SANDBOX_NETWORK_DISABLED", "Codex"),
    Marker("CODEX_THREAD_ID", "Codex"),
    Marker("CODEX_CI", "Codex"),
    Marker("GEMINI_CLI", "Gemini CLI"),
    Marker("QWEN_CODE", "Qwen Code"),
    Marker("OPENCODE", "opencode"),
    Marker("COPILOT_AGENT_SESSION_ID", "GitHub Copilot CLI"),
    Marker("CURSOR_AGENT", "Cursor"),
    Marker("CLINE_ACTIVE", "Cline"),
    Marker("AMP_CURRENT_THREAD_ID", "Amp"),
    Marker("AI_AGENT", "an agent"),
    Marker("AGENT", "an agent"),
)
"""`CODEX_HOME` and the like are left out, because people set them in their own shells."""


def agent_marker(environ: Mapping[str, str]) -> Marker | None:
    """Returns the first marker in the environment; None if a person started the command."""
    return next((marker for marker in MARKERS if environ.get(marker.name)), None)


def refuse_inside_agent(environ: Mapping[str, str], what: str) -> None:
    """Raises if an agent started this command. `what` is the command as a person types it."""
    marker = agent_marker(environ)
    if marker is not None:
        raise SubluminalError(
            f"`{what}` is for a person to run, but {marker.client} runs it: `{marker.name}` is set",
            hint="run it in your own terminal",
        )
