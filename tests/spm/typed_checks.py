"""A program over AgentSecurity whose types mypy --strict must find. It is never run."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, assert_type

from subluminal.spm import (
    AgentActionRequest,
    AgentSecurity,
    BeforeCheckContext,
    CheckToolCallParams,
    Decision,
    Event,
    PluginResult,
    Reason,
    SecurityCheckResult,
    SecurityError,
    SecurityPlugin,
    TrustContext,
    TrustEvaluator,
    output_validator,
    session_context,
)


class Night:
    """A plugin of the program."""

    name = "night"
    fail_open = False

    async def before_check(self, context: BeforeCheckContext) -> PluginResult | None:
        if context.request.agent.environment != "night":
            return None
        return PluginResult(Decision(outcome="DENY", reasons=(Reason("NIGHT", "come back"),)))


async def ask(request: AgentActionRequest, decision: Decision) -> bool:
    return request.action.tool_name == "pay" and decision.outcome == "REQUIRE_APPROVAL"


def ticket(_request: AgentActionRequest, _decision: Decision) -> str | None:
    return None


def told(_event: Event) -> None:
    return None


plugins: list[SecurityPlugin] = [Night(), session_context(limits={}), output_validator(max_size=9)]
security = AgentSecurity(
    policy_path="policy.json",
    plugins=plugins,
    on_approval_required=ask,
    on_ticket_required=ticket,
    on_audit_event=told,
)


def send(to: str, subject: str = "hello") -> int:
    return len(to + subject)


async def fetch(url: str) -> bytes:
    return url.encode()


guarded_send = security.protect("send", send, agent_id="a", trust_level="basic")
guarded_fetch = security.protect(
    "fetch", fetch, agent_id="a", extract_tool_args=lambda url: {"u": url}
)
assert_type(guarded_send("ann"), int)
as_before: Callable[[str], Coroutine[Any, Any, bytes]] = guarded_fetch
guarded_send(7)  # type: ignore[arg-type]
security.protect("send", send, agent_id="a", no_such=1)  # type: ignore[call-arg]


async def main() -> None:
    params: CheckToolCallParams = {"tool_name": "t", "tool_args": {}, "agent_id": "a"}
    assert_type(await security.check_tool_call(**params), SecurityCheckResult)
    assert_type(security.check_tool_call_sync(**params), SecurityCheckResult)
    security.check_tool_call_sync(tool_name="t", tool_args={})  # type: ignore[call-arg]
    checked: Awaitable[SecurityCheckResult] = security.check_tool_call(
        tool_name="t", tool_args={}, agent_id="a", data_labels=["PII"], session_id="s"
    )
    assert_type((await checked).decision.reasons, tuple[Reason, ...])
    try:
        await guarded_fetch("https://example.com")
    except SecurityError as error:
        assert_type(error.decision, Decision)
    assert_type(security.get_audit_log(), list[Event])
    TrustEvaluator().evaluate(security, TrustContext("prod"))  # type: ignore[arg-type]
