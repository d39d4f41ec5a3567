"""Pydantic AI: tools that leave their call to a person, and tools that fail."""

from billing import POLICY
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
)
from pydantic_ai.models.function import FunctionModel
from with_pydantic_ai import respond

from subluminal import Guard
from subluminal.integrations.pydantic_ai import GuardCapability


def deferred() -> None:
    """A tool requires an approval of the framework's own, and runs again with it."""

    def close(ctx: RunContext[None], order: str) -> str:
        """Closes an account."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        return f"closed {order}"

    with Guard(agent_id="billing", policy=POLICY) as guard:
        agent = Agent(
            FunctionModel(respond),
            tools=[close],
            capabilities=[GuardCapability(guard)],
            output_type=[str, DeferredToolRequests],
        )
        first = agent.run_sync("close A-7")
        assert isinstance(first.output, DeferredToolRequests)
        (asked,) = first.output.approvals
        print(asked.tool_name)
        results = DeferredToolResults(approvals={asked.tool_call_id: True})
        again = agent.run_sync(message_history=first.all_messages(), deferred_tool_results=results)
        print(again.output)


def failing() -> None:
    """A tool asks the model to try again, then another raises."""

    def look(order: str) -> str:
        """Looks."""
        raise ModelRetry("which order?")

    def crash(order: str) -> str:
        """Crashes."""
        raise RuntimeError("no such order")

    with Guard(agent_id="billing", policy=POLICY) as guard:
        agent = Agent(
            FunctionModel(respond), tools=[look, crash], capabilities=[GuardCapability(guard)]
        )
        agent.run_sync("look A-7")
        try:
            agent.run_sync("crash A-7")
        except RuntimeError as error:
            print(error)
