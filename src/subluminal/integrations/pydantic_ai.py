"""Pydantic AI: a capability around every tool call of an agent.

agent = Agent(model, tools=[refund], capabilities=[GuardCapability(guard)])
"""

from typing import Any

from subluminal.integrations.framework import Found, guarded_call_async, missing
from subluminal.sdk.guard import Guard, Refused, RunTerminated

try:
    from pydantic_ai import RunContext, ToolDefinition
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
    from pydantic_ai.messages import ToolCallPart
except ImportError as error:
    raise missing("pydantic_ai", "pydantic-ai-slim>=2.20", error) from None

_PAUSES = (ApprovalRequired, CallDeferred)
"""With these, a tool leaves its call to a person or to another process."""


class GuardCapability(AbstractCapability[Any]):
    """Decides and records every tool call of an agent. The model is told of a refusal as a failure.

    Rules see the arguments as the tool gets them: validated, and changed by other capabilities.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def get_ordering(self) -> CapabilityOrdering:
        """Stands next to the tool: nothing changes the call after its decision."""
        return CapabilityOrdering(position="innermost")

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Any,
    ) -> Any:
        """Guards one call."""
        wanted = self._guard.call(
            call.tool_name, args, provider="pydantic-ai", client_call_id=call.tool_call_id
        )
        try:
            return await guarded_call_async(wanted, lambda: handler(args), Found, _PAUSES)
        except RunTerminated:
            raise
        except Refused as refused:
            raise ToolFailed(str(refused)) from None
