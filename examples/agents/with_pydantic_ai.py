"""A billing agent with Pydantic AI. A real model takes the place of `FunctionModel`."""

import asyncio
import json
from collections.abc import AsyncIterator

from billing import Call, close_account, first_calls, next_calls, refund, run
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from subluminal import Guard
from subluminal.integrations.pydantic_ai import GuardCapability


def read(messages: list[ModelMessage]) -> tuple[list[Call], str]:
    """Reads what the model is shown: the calls that it makes, or what it says."""
    shown = []
    for part in messages[-1].parts:
        if isinstance(part, UserPromptPart):
            return first_calls(str(part.content)), ""
        if isinstance(part, ToolReturnPart):
            shown.append((part.tool_name, part.model_response_str()))
    return next_calls(shown), "; ".join(text for _, text in shown)


def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answers at once."""
    calls, said = read(messages)
    if not calls:
        return ModelResponse(parts=[TextPart(said)])
    return ModelResponse(parts=[ToolCallPart(call.tool, call.args) for call in calls])


async def stream(
    messages: list[ModelMessage], info: AgentInfo
) -> AsyncIterator[str | DeltaToolCalls]:
    """Answers piece by piece."""
    calls, said = read(messages)
    if not calls:
        for word in said.split(" "):
            yield f"{word} "
    for number, call in enumerate(calls):
        yield {number: DeltaToolCall(name=call.tool)}
        yield {number: DeltaToolCall(json_args=json.dumps(call.args))}


def answer(guard: Guard, task: str, how: str) -> str:
    """Lets the agent do a task, and returns its last message."""
    agent = Agent(
        FunctionModel(respond, stream_function=stream),
        tools=[refund, close_account],
        capabilities=[GuardCapability(guard)],
    )
    if how == "invoke":
        return agent.run_sync(task).output
    return asyncio.run(_answer(agent, task, how))


async def _answer(agent: Agent, task: str, how: str) -> str:
    if how == "async":
        return (await agent.run(task)).output
    async with agent.run_stream(task) as result:
        return (await result.get_output()).strip()


if __name__ == "__main__":
    run(answer)
