"""GitHub Copilot CLI (1.0.102). Its JSON does not name the event, so the command line does. It
tells no call ids, and names the tools of MCP servers `SERVER-TOOL`."""

from subluminal.adapters.agent_hooks.clients.description import (
    HookClient,
    Keys,
    speller,
    split_name,
)
from subluminal.adapters.agent_hooks.events import Kind, Members
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


def _error_of(members: Members) -> str | None:
    told = members.text("error")
    result = members.object("toolResult")
    if told is not None or result.get("resultType") in (None, "success"):
        return told
    shown = result.get("textResultForLlm")
    return shown if isinstance(shown, str) and shown else "the tool failed"


def _refuse(text: str, _ends_run: bool) -> Answer:
    answer = {"permissionDecision": "deny", "permissionDecisionReason": text}
    return Answer(stdout=encode_json(answer))


CLIENT = HookClient(
    name="copilot",
    kinds=_KINDS,
    keys=Keys("sessionId", "toolName", "toolArgs", "toolResult"),
    tool_of=lambda full, _members, servers: split_name(full, "", "-", servers, _spell),
    error_of=_error_of,
    refuse=_refuse,
    event_key="hookName",
    spell=_spell,
    sends_ids=False,
)
