"""Anthropic's tool runner, sync and async: the tools that it is given are guarded.

    runner = client.beta.messages.tool_runner(tools=guarded([refund], guard), …)

The runner tells a tool no id of its call, and turns every exception of a tool into a result. So
calls have no `client_call_id`, and the end of a run is told to the model, as a refusal is.
"""

from collections.abc import Iterable
from typing import Any

from subluminal.adapters.in_process.guarding.calls import GuardedCall
from subluminal.integrations.framework import (
    Found,
    arguments,
    guarded_call,
    guarded_call_async,
    missing,
)
from subluminal.sdk.guard import Guard, Refused

try:
    from anthropic.lib.tools import (
        BetaAsyncBuiltinFunctionTool,
        BetaAsyncFunctionTool,
        BetaBuiltinFunctionTool,
        BetaFunctionTool,
        ToolError,
    )
except ImportError as error:
    raise missing("anthropic", "anthropic>=1", error) from None


def guarded(tools: Iterable[Any], guard: Guard) -> list[Any]:
    """Returns the tools for a tool runner, guarded.

    A dict is a tool that Anthropic's servers run; it stays as it is. A toolset has tools of its
    own, which are not seen here: it is a TypeError.
    """
    return [_guarded(tool, guard) for tool in tools]


def _guarded(tool: Any, guard: Guard) -> Any:
    if isinstance(tool, dict):
        return tool
    if isinstance(tool, BetaFunctionTool | BetaBuiltinFunctionTool):
        return _Tool(tool, guard)
    if isinstance(tool, BetaAsyncFunctionTool | BetaAsyncBuiltinFunctionTool):
        return _AsyncTool(tool, guard)
    raise TypeError(f"a tool of type {type(tool).__name__} cannot be guarded")


class _Wrapped:
    """What both kinds have: the tool inside, which answers everything but `call`."""

    def __init__(self, tool: Any, guard: Guard) -> None:
        self._tool = tool
        self._guard = guard

    @property
    def name(self) -> str:
        return str(self._tool.name)

    def _guarded_call(self, input: object) -> GuardedCall:
        return self._guard.call(self.name, arguments(input), provider="anthropic")

    def to_dict(self) -> Any:
        return self._tool.to_dict()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)


class _Tool(_Wrapped, BetaBuiltinFunctionTool):
    """A tool for the runner of `Anthropic`."""

    def call(self, input: object) -> Any:
        call = self._guarded_call(input)
        try:
            return guarded_call(call, lambda: self._tool.call(input), Found)
        except Refused as refused:
            raise ToolError(str(refused)) from None


class _AsyncTool(_Wrapped, BetaAsyncBuiltinFunctionTool):
    """A tool for the runner of `AsyncAnthropic`."""

    async def call(self, input: object) -> Any:
        call = self._guarded_call(input)
        try:
            return await guarded_call_async(call, lambda: self._tool.call(input), Found)
        except Refused as refused:
            raise ToolError(str(refused)) from None
