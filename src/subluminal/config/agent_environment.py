"""Tells whether a command was started by an agent. What only a person may do asks here (local-is-not-trusted).

The agent runs as the same user, so this stops a habit and a mistake, not a determined attacker:
docs/concepts/agents-with-a-shell.md says what does.
"""

from collections.abc import Mapping
from typing import NamedTuple

from subluminal.config import env
from subluminal.errors import SubluminalError


class Marker(NamedTuple):
    """A variable that an agent's client sets for what it starts."""

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
"""`CODEX_HOME` and the like are not here: people set them in their own shells."""


def agent_marker(environ: Mapping[str, str]) -> Marker | None:
    """Returns the first sign that an agent is at the keyboard."""
    return next((marker for marker in MARKERS if environ.get(marker.name)), None)


def refuse_inside_agent(environ: Mapping[str, str], what: str) -> None:
    """Raises if an agent started us. `what` is the command, as a person would type it."""
    marker = agent_marker(environ)
    if marker is not None:
        raise SubluminalError(
            f"`{what}` is for a person, and this is {marker.client}: `{marker.name}` is set",
            hint="run it in a terminal of your own",
        )
