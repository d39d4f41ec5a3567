"""Codex (0.166.0). It ignores `ask` and `continue: false`, and a deny with any of them or with an
empty reason: then the call runs. So it gets a deny with a reason, and nothing else."""

from subluminal.adapters.agent_hooks.clients.description import (
    HookClient,
    Keys,
    double_underscore_name,
    speller,
)
from subluminal.adapters.agent_hooks.events import Kind
from subluminal.adapters.agent_hooks.wire import Answer
from subluminal.contracts.templates import encode_json

_spell = speller("_", "_")
_KINDS = {
    "PreToolUse": Kind.BEFORE,
    "PostToolUse": Kind.AFTER,
    "SessionStart": Kind.STARTED,
    "UserPromptSubmit": Kind.PROMPTED,
    "Stop": Kind.STOPPED,
    "Interrupt": Kind.STOPPED,
    "SessionEnd": Kind.ENDED,
}


def _refuse(text: str, _ends_run: bool) -> Answer:
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": text,
    }
    return Answer(stdout=encode_json({"hookSpecificOutput": output}))


CLIENT = HookClient(
    name="codex",
    kinds=_KINDS,
    keys=Keys(call_id="tool_use_id"),
    tool_of=lambda full, _members, servers: double_underscore_name(full, servers, _spell),
    spell=_spell,
    refuse=_refuse,
)
