"""Gemini CLI (0.61.0). It tells no call ids; calls are paired by tool and arguments, in order."""

from collections.abc import Iterable
from typing import Any

from subluminal.adapters.agent_hooks.clients.description import HookClient, ToolName, served_by
from subluminal.adapters.agent_hooks.events import Kind, Members
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


def _error_of(members: Members) -> str | None:
    failed = members.object("tool_response").get("error")
    if not failed:
        return None
    told = failed.get("message") if isinstance(failed, dict) else failed
    return told if isinstance(told, str) and told else "the tool failed"


def _tool_of(_full: str, members: Members, _servers: Iterable[str]) -> ToolName | None:
    context = members.object("mcp_context")
    server, tool = context.get("server_name"), context.get("tool_name")
    if isinstance(server, str) and isinstance(tool, str):
        return served_by(server, tool)
    return None


def _refuse(text: str, ends_run: bool) -> Answer:
    answer: dict[str, Any] = {"decision": "deny", "reason": text}
    if ends_run:
        answer |= {"continue": False, "stopReason": text}
    return Answer(stdout=encode_json(answer))


CLIENT = HookClient(
    name="gemini",
    kinds=_KINDS,
    tool_of=_tool_of,
    error_of=_error_of,
    refuse=_refuse,
    names_run=False,
    sends_ids=False,
)
