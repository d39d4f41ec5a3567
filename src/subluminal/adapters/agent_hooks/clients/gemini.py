"""Gemini CLI (0.61.0). It tells no call ids; calls are paired by tool and arguments, in order."""

from collections.abc import Iterable
from typing import Any

from subluminal.adapters.agent_hooks.clients.description import HookClient, ToolName, served_by
from subluminal.adapters.agent_hooks.events import Call, Event, Kind, Members
from subluminal.adapters.agent_hooks.wire import Answer
from subluminal.contracts.templates import encode_json

_KINDS = {
    "BeforeTool": Kind.BEFORE,
    "AfterTool": Kind.AFTER,
    "SessionStart": Kind.STARTED,
    "BeforeAgent": Kind.PROMPTED,
    "AfterAgent": Kind.STOPPED,
    "SessionEnd": Kind.ENDED,
}


def _read(kind: Kind, members: Members, _servers: Iterable[str]) -> Event:
    return Event(
        kind=kind,
        session=members.text("session_id"),
        cwd=members.text("cwd"),
        call=_call(members) if kind in (Kind.BEFORE, Kind.AFTER) else None,
        result=members.raw("tool_response"),
        error=_error(members) if kind is Kind.AFTER else None,
        prompt=members.raw("prompt"),
    )


def _error(members: Members) -> str | None:
    failed = members.object("tool_response").get("error")
    if not failed:
        return None
    told = failed.get("message") if isinstance(failed, dict) else failed
    return told if isinstance(told, str) and told else "the tool failed"


def _call(members: Members) -> Call:
    context = members.object("mcp_context")
    server, tool = context.get("server_name"), context.get("tool_name")
    named = ToolName("@gemini", members.text("tool_name") or "?")
    if isinstance(server, str) and isinstance(tool, str):
        named = served_by(server, tool)
    return Call(
        server_name=named.server_name,
        tool_name=named.tool_name,
        args=members.args("tool_input"),
        args_raw=members.raw("tool_input"),
    )


def _refuse(text: str, ends_run: bool) -> Answer:
    answer: dict[str, Any] = {"decision": "deny", "reason": text}
    if ends_run:
        answer |= {"continue": False, "stopReason": text}
    return Answer(stdout=encode_json(answer))


CLIENT = HookClient(
    name="gemini", kinds=_KINDS, read=_read, refuse=_refuse, names_run=False, sends_ids=False
)
