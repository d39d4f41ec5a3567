"""OpenAI's Agents SDK: the tools, MCP servers and handoffs of an agent.

result = await Runner.run(guarded(agent, guard), "Refund order 7.")
"""

import dataclasses
from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from typing import Any, TypeVar, cast

from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.integrations.framework import Found, arguments, guarded_call_async, missing
from subluminal.sdk.guard import Guard, Refused, RunTerminated

try:
    from agents import Agent, AgentsException, FunctionTool, Handoff, UserError, handoff
    from agents.tool import (
        CodeInterpreterTool,
        FileSearchTool,
        HostedMCPTool,
        ImageGenerationTool,
        ToolOriginType,
        ToolSearchTool,
        WebSearchTool,
        get_function_tool_origin,
        resolve_function_tool_failure_error_function,
        set_function_tool_failure_error_function,
    )
except ImportError as error:
    raise missing("openai_agents", "openai-agents>=0.20", error) from None

_PROVIDER = "openai-agents"
_A = TypeVar("_A", bound=Agent[Any])

_AT_OPENAI = (
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    ToolSearchTool,
    WebSearchTool,
)
"""Tools that run on OpenAI's servers: no call of them is seen here."""

_under_way: ContextVar[GuardedCall | None] = ContextVar("subluminal_agents_call", default=None)
"""The call whose tool runs here."""
_failures: ContextVar[list[str] | None] = ContextVar("subluminal_agents_failures", default=None)
"""The failures of that tool, which the SDK turns into results."""
_refusal: ContextVar[str | None] = ContextVar("subluminal_agents_refusal", default=None)
"""What the model is told of the handoff that was decided here last; None if it was allowed."""


class AgentRunTerminated(RunTerminated, AgentsException):
    """The run is over. The SDK lets its own exceptions through, and wraps all others."""


def guarded(agent: _A, guard: Guard) -> _A:
    """Returns the agent with its tools, MCP servers and handoffs guarded, and so those it hands to.

    The model is told of a refusal as the result of the tool; of a refused handoff, as its transfer
    message, and the agent goes on itself. An agent among the handoffs that is guarded already
    keeps its guard, such as `guard.delegate("refunds")`. Tools on OpenAI's servers stay as they
    are. These are a UserError: shell, computer, patch and custom tools, which let no refusal
    through; an agent as a tool that is not guarded itself, because its own tools would not be; and,
    when the agent runs, a handoff that was added to it later.
    """
    return cast(_A, _Guarding(guard).agent(agent))


class _GuardedAgent:
    """What a guarded agent has before its own class."""

    _guard: Guard

    async def get_all_tools(self, run_context: Any) -> list[Any]:
        """Returns the tools for one turn, guarded."""
        for each in self.handoffs:  # type: ignore[attr-defined]
            if not isinstance(each, _GuardedHandoff):
                raise UserError("a handoff was added to a guarded agent: add it before `guarded`")
        tools = await super().get_all_tools(run_context)  # type: ignore[misc]
        return [_tool(tool, self._guard) for tool in tools]


class _GuardedHandoff(Handoff[Any, Any]):
    """A handoff that is decided and recorded, to an agent that is guarded."""


class _Guarding:
    """Guards one agent and those that it can reach, each once."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._known: dict[int, tuple[Any, Any]] = {}

    def agent(self, agent: Any) -> Any:
        if isinstance(agent, _GuardedAgent):
            return agent
        if id(agent) in self._known:
            return self._known[id(agent)][1]
        for tool in agent.tools:
            _tool(tool, self._guard)  # an error here, not in the middle of a run
        fields = {each.name: getattr(agent, each.name) for each in dataclasses.fields(agent)}
        fields["mcp_servers"] = [_Server(server) for server in agent.mcp_servers]
        fields["handoffs"] = []
        cls = type(agent)
        kind = type(f"Guarded{cls.__name__}", (_GuardedAgent, cls), {"_guard": self._guard})
        found = kind(**fields)
        self._known[id(agent)] = (agent, found)  # before the handoffs: they may lead back here
        found.handoffs.extend(self._handoff(each, found) for each in agent.handoffs)
        return found

    def _handoff(self, given: Any, owner: Any) -> Handoff[Any, Any]:
        inner = given if isinstance(given, Handoff) else handoff(given)
        found = copy(inner)
        found.__class__ = _GuardedHandoff

        async def invoke(context: Any, text: str) -> Any:
            call = self._guard.call(inner.tool_name, arguments(text), provider=_PROVIDER)
            try:
                target = await guarded_call_async(
                    call, lambda: inner.on_invoke_handoff(context, text), lambda to: Found(to.name)
                )
            except Refused as refused:
                _refusal.set(_told(refused))
                return owner
            _refusal.set(None)
            return self.agent(target)

        def told(agent: Any) -> str:
            return _refusal.get() or inner.get_transfer_message(agent)

        def filtered(data: Any) -> Any:
            assert inner.input_filter is not None
            return data if _refusal.get() else inner.input_filter(data)

        found.on_invoke_handoff = invoke
        found.get_transfer_message = told  # type: ignore[method-assign]
        if inner.input_filter is not None:
            found.input_filter = filtered
        return found


def _tool(tool: Any, guard: Guard) -> Any:
    """Returns a tool whose calls are guarded. Raises UserError if it lets no refusal through."""
    if isinstance(tool, _AT_OPENAI):
        return tool
    if not isinstance(tool, FunctionTool):
        raise UserError(
            f"a tool of type {type(tool).__name__} cannot be guarded: make it a function tool"
        )
    if tool._is_agent_tool and not _is_harmless(tool._agent_instance):
        raise UserError(
            f"the agent behind the tool {tool.name} is not guarded: "
            "use `guarded(agent, guard).as_tool(…)`"
        )
    found = copy(tool)
    tell = resolve_function_tool_failure_error_function(tool)
    if tell is not None:
        set_function_tool_failure_error_function(found, _noting(tell))
    inner, name, server = found.on_invoke_tool, *_names(tool)

    async def invoke(context: Any, text: str) -> Any:
        call = guard.call(
            name,
            arguments(text),
            server=server,
            provider="mcp" if server else _PROVIDER,
            client_call_id=context.tool_call_id,
        )
        failures: list[str] = []

        async def run() -> Any:
            _under_way.set(call)
            _failures.set(failures)
            return await inner(context, text)

        try:
            return await guarded_call_async(
                call, run, lambda result: Found(result, failures[0] if failures else None)
            )
        except Refused as refused:
            return _told(refused)

    found.on_invoke_tool = invoke
    return found


def _is_harmless(agent: Any) -> bool:
    """Whether an agent can call nothing, or is guarded itself."""
    if isinstance(agent, _GuardedAgent):
        return True
    return not (agent.tools or agent.mcp_servers or agent.handoffs)


def _told(refused: Refused) -> str:
    """Returns what the model is told. The end of a run is raised."""
    if not isinstance(refused, RunTerminated):
        return str(refused)
    raise AgentRunTerminated(
        str(refused), refused.decision, call_id=refused.call_id, run_id=refused.run_id
    ) from None


def _noting(tell: Callable[[Any, Exception], Any]) -> Callable[[Any, Exception], Any]:
    """Returns a function that tells the model of a failure as `tell` does, and notes it."""

    def noted(context: Any, error: Exception) -> Any:
        failures = _failures.get()
        if failures is not None:
            failures.append(f"{type(error).__name__}: {error}")
        return tell(context, error)

    return noted


def _names(tool: FunctionTool) -> tuple[str, str | None]:
    """Returns the name of a tool, for one of an MCP server as the server has it, and the server."""
    origin = get_function_tool_origin(tool)
    if origin is None or origin.type is not ToolOriginType.MCP:
        return tool.name, None
    binding = getattr(tool, "_mcp_tool_binding", None)  # `name` may have the server's before it
    return binding[1] if binding else tool.name, origin.mcp_server_name


class _Server:
    """An MCP server whose calls carry the id of the guarded call, and offer it to a shim."""

    def __init__(self, server: Any) -> None:
        self._server = server

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> Any:
        call = _under_way.get()
        offered = {} if call is None else call.offer()
        return await self._server.call_tool(tool_name, arguments, meta={**(meta or {}), **offered})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)
