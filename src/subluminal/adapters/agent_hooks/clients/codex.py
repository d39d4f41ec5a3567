"""Codex (0.166.0). It ignores `ask` and `continue: false`, and a deny with any of them or with an
empty reason: then the call runs. So it gets a deny with a reason, and nothing else."""

from collections.abc import Iterable

from subluminal.adapters.agent_hooks.clients.description import HookClient, ToolName, speller
from subluminal.adapters.agent_hooks.clients.double_underscore import tool_named
from subluminal.adapters.agent_hooks.events import Call, Event, Kind, Members
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


def _read(kind: Kind, members: Members, servers: Iterable[str]) -> Event:
    return Event(
        kind=kind,
        session=members.text("session_id"),
        cwd=members.text("cwd"),
        call=_call(members, servers) if kind in (Kind.BEFORE, Kind.AFTER) else None,
        result=members.raw("tool_response"),
        prompt=members.raw("prompt"),
    )


def _call(members: Members, servers: Iterable[str]) -> Call:
    full = members.text("tool_name") or "?"
    server_name, tool_name = tool_named(full, servers, _spell) or ToolName("@codex", full)
    return Call(
        server_name=server_name,
        tool_name=tool_name,
        args=members.args("tool_input"),
        args_raw=members.raw("tool_input"),
        call_id=members.text("tool_use_id"),
    )


def _refuse(text: str, _ends_run: bool) -> Answer:
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": text,
    }
    return Answer(stdout=encode_json({"hookSpecificOutput": output}))


CLIENT = HookClient(name="codex", kinds=_KINDS, read=_read, refuse=_refuse, spell=_spell)
