"""LangChain and LangGraph: a middleware around every tool call of an agent.

agent = create_agent(model, tools, middleware=[GuardMiddleware(guard)])

A graph of one's own gives the two methods of the middleware to its ToolNode.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.integrations.framework import Found, guarded_call, guarded_call_async, missing
from subluminal.sdk.guard import Guard, Refused, RunTerminated

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.messages import ToolMessage
    from langgraph.errors import GraphInterrupt
    from langgraph.types import Command
except ImportError as error:
    raise missing("langchain", "langchain>=1.3", error) from None

_PAUSES = (GraphInterrupt,)
"""A tool that asks a person with `interrupt` runs again from its start when it is resumed."""


class GuardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Decides and records every tool call of an agent.

    The model is told of a refusal in a ToolMessage with the status "error". Put it last in the
    list: what stands before it wraps it, and may change the call that is decided.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Guards a call of an agent that runs with `invoke` or `stream`."""
        try:
            return guarded_call(self._call(request), lambda: handler(request), _read, _PAUSES)
        except Refused as refused:
            return _told(request, refused)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Guards a call of an agent that runs with `ainvoke` or `astream`."""
        try:
            return await guarded_call_async(
                self._call(request), lambda: handler(request), _read, _PAUSES
            )
        except Refused as refused:
            return _told(request, refused)

    def _call(self, request: ToolCallRequest) -> GuardedCall:
        wanted = request.tool_call
        return self._guard.call(
            wanted["name"], wanted["args"], provider="langchain", client_call_id=wanted["id"]
        )


def _told(request: ToolCallRequest, refused: Refused) -> ToolMessage:
    if isinstance(refused, RunTerminated):
        raise refused
    wanted = request.tool_call
    return ToolMessage(str(refused), name=wanted["name"], tool_call_id=wanted["id"], status="error")


def _read(found: ToolMessage | Command[Any] | list[ToolMessage | Command[Any]]) -> Found:
    if isinstance(found, ToolMessage):
        return Found(found.content, found.text if found.status == "error" else None)
    if isinstance(found, Command):
        return Found(found.update)
    results, failures = zip(*map(_read, found), strict=True) if found else ((), ())
    return Found(list(results), next(filter(None, failures), None))
