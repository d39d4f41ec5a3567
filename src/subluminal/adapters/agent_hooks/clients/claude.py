"""Claude Code (2.1.325). `continue: false` alone lets the call run, so it goes with a deny."""

from collections.abc import Iterable
from typing import Any

from subluminal.adapters.agent_hooks.clients.description import HookClient, ToolName, speller
from subluminal.adapters.agent_hooks.clients.double_underscore import tool_named
from subluminal.adapters.agent_hooks.events import Call, Event, Kind, Members
from subluminal.adapters.agent_hooks.wire import Answer
from subluminal.contracts.templates import encode_json

_spell = speller("_-", "_")
_KINDS = {
    "PreToolUse": Kind.BEFORE,
    "PostToolUse": Kind.AFTER,
    "PostToolUseFailure": Kind.AFTER,
    "SessionStart": Kind.STARTED,
    "UserPromptSubmit": Kind.PROMPTED,
    "Stop": Kind.STOPPED,
    "SessionEnd": Kind.ENDED,
}


def _read(kind: Kind, members: Members, servers: Iterable[str]) -> Event:
    call = _call(members, servers) if kind in (Kind.BEFORE, Kind.AFTER) else None
    has_failed = members.text("hook_event_name") == "PostToolUseFailure"
    return Event(
        kind=kind,
        session=members.text("session_id"),
        cwd=members.text("cwd"),
        call=call,
        result=members.raw("tool_response"),
        error=(members.text("error") or "the tool failed") if has_failed else None,
        is_cancelled=has_failed and members.value("is_interrupt") is True,
        prompt=members.raw("prompt"),
    )


def _call(members: Members, servers: Iterable[str]) -> Call:
    full = members.text("tool_name") or "?"
    own = members.object("mcp_server").get("name")
    named = tool_named(full, [own] if isinstance(own, str) and own else servers, _spell)
    server_name, tool_name = named or ToolName("@claude", full)
    return Call(
        server_name=server_name,
        tool_name=tool_name,
        args=members.args("tool_input"),
        args_raw=members.raw("tool_input"),
        call_id=members.text("tool_use_id"),
    )


def _decided(decision: str, text: str, **more: Any) -> Answer:
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": text,
    }
    return Answer(stdout=encode_json({"hookSpecificOutput": output, **more}))


def _refuse(text: str, ends_run: bool) -> Answer:
    if ends_run:
        return _decided("deny", text, **{"continue": False, "stopReason": text})
    return _decided("deny", text)


CLIENT = HookClient(
    name="claude",
    kinds=_KINDS,
    read=_read,
    spell=_spell,
    refuse=_refuse,
    ask=lambda text: _decided("ask", text),
)
