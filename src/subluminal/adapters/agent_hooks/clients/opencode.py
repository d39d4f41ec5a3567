"""opencode (1.18.33). Our plugin in its process makes these events, and throws what is refused. The
names of MCP tools are `SERVER_TOOL`; the model's call id does not reach MCP servers."""

from subluminal.adapters.agent_hooks.clients.description import (
    HookClient,
    Keys,
    speller,
    split_name,
)
from subluminal.adapters.agent_hooks.events import Kind
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


def _refuse(text: str, _ends_run: bool) -> Answer:
    return Answer(stdout=encode_json({"refuse": text}))


CLIENT = HookClient(
    name="opencode",
    kinds=_KINDS,
    keys=Keys(call_id="call_id"),
    tool_of=lambda full, _members, servers: split_name(full, "", "_", servers, _spell),
    refuse=_refuse,
    names_run=False,
    spell=_spell,
    sends_ids=False,
)
