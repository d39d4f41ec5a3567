"""GitHub Copilot CLI (1.0.102). Its JSON does not name the event, so the command line does. It
tells no call ids, and names the tools of MCP servers `SERVER-TOOL`."""

from collections.abc import Iterable

from subluminal.adapters.agent_hooks.clients.description import (
    HookClient,
    ToolName,
    speller,
    split_name,
)
from subluminal.adapters.agent_hooks.events import Call, Event, Kind, Members
from subluminal.adapters.agent_hooks.wire import Answer
from subluminal.contracts.templates import encode_json

_spell = speller("_-", "-")
_KINDS = {
    "preToolUse": Kind.BEFORE,
    "postToolUse": Kind.AFTER,
    "postToolUseFailure": Kind.AFTER,
    "sessionStart": Kind.STARTED,
    "userPromptSubmitted": Kind.PROMPTED,
    "agentStop": Kind.STOPPED,
    "sessionEnd": Kind.ENDED,
}


def _read(kind: Kind, members: Members, servers: Iterable[str]) -> Event:
    return Event(
        kind=kind,
        session=members.text("sessionId"),
        cwd=members.text("cwd"),
        call=_call(members, servers) if kind in (Kind.BEFORE, Kind.AFTER) else None,
        result=members.raw("toolResult"),
        error=_error(members) if kind is Kind.AFTER else None,
        prompt=members.raw("prompt"),
    )


def _error(members: Members) -> str | None:
    told = members.text("error")
    result = members.object("toolResult")
    if told is not None or result.get("resultType") in (None, "success"):
        return told
    shown = result.get("textResultForLlm")
    return shown if isinstance(shown, str) and shown else "the tool failed"


def _call(members: Members, servers: Iterable[str]) -> Call:
    full = members.text("toolName") or "?"
    named = split_name(full, "", "-", servers, _spell) or ToolName("@copilot", full)
    return Call(
        server_name=named.server_name,
        tool_name=named.tool_name,
        args=members.args("toolArgs"),
        args_raw=members.raw("toolArgs"),
    )


def _refuse(text: str, _ends_run: bool) -> Answer:
    answer = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return Answer(stdout=encode_json(answer))


CLIENT = HookClient(
    name="copilot",
    kinds=_KINDS,
    read=_read,
    refuse=_refuse,
    event_key="hookName",
    spell=_spell,
    sends_ids=False,
)
