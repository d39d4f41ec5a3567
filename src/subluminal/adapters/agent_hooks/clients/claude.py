"""Claude Code (2.1.325). `continue: false` alone lets the call run, so it goes with a deny."""

from collections.abc import Iterable
from typing import Any

from subluminal.adapters.agent_hooks.clients.description import (
    HookClient,
    Keys,
    ToolName,
    double_underscore_name,
    speller,
)
from subluminal.adapters.agent_hooks.events import Kind, Members
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


def _tool_of(full: str, members: Members, servers: Iterable[str]) -> ToolName | None:
    own = members.object("mcp_server").get("name")
    return double_underscore_name(full, [own] if isinstance(own, str) and own else servers, _spell)


def _error_of(members: Members) -> str | None:
    if members.text("hook_event_name") != "PostToolUseFailure":
        return None
    return members.text("error") or "the tool failed"


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
    keys=Keys(call_id="tool_use_id"),
    tool_of=_tool_of,
    error_of=_error_of,
    spell=_spell,
    refuse=_refuse,
    ask=lambda text: _decided("ask", text),
)
