"""opencode (1.18.33). Our plugin in its process makes these events, and throws what is refused. The
names of MCP tools are `SERVER_TOOL`; the model's call id does not reach MCP servers."""

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

_spell = speller("_-", "_")
_KINDS = {
    "tool.execute.before": Kind.BEFORE,
    "tool.execute.after": Kind.AFTER,
    "session.created": Kind.STARTED,
    "chat.message": Kind.PROMPTED,
    "session.idle": Kind.STOPPED,
    "dispose": Kind.ENDED,
}


def _read(kind: Kind, members: Members, servers: Iterable[str]) -> Event:
    return Event(
        kind=kind,
        session=members.text("session_id"),
        cwd=members.text("cwd"),
        call=_call(members, servers) if kind in (Kind.BEFORE, Kind.AFTER) else None,
        result=members.raw("tool_response"),
        error=members.text("error"),
        prompt=members.raw("prompt"),
    )


def _call(members: Members, servers: Iterable[str]) -> Call:
    full = members.text("tool_name") or "?"
    named = split_name(full, "", "_", servers, _spell) or ToolName("@opencode", full)
    return Call(
        server_name=named.server_name,
        tool_name=named.tool_name,
        args=members.args("tool_input"),
        args_raw=members.raw("tool_input"),
        call_id=members.text("call_id"),
    )


def _refuse(text: str, _ends_run: bool) -> Answer:
    return Answer(stdout=encode_json({"refuse": text}))


CLIENT = HookClient(
    name="opencode",
    kinds=_KINDS,
    read=_read,
    refuse=_refuse,
    names_run=False,
    spell=_spell,
    sends_ids=False,
)
