"""A billing agent with OpenAI's Agents SDK. A real model takes the place of `ScriptedModel`."""

import asyncio
import json
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from billing import close_account, first_calls, next_calls, refund, run

from subluminal import Guard
from subluminal.integrations.openai_agents import guarded


def respond(call: ModelCall) -> Any:
    """Reads what the model is shown, and returns what it does."""
    items = [{"content": call.input, "role": "user"}] if isinstance(call.input, str) else call.input
    names = {item["call_id"]: item["name"] for item in items if item.get("type") == "function_call"}
    shown: list[tuple[str, str]] = []
    for item in reversed(items):
        if item.get("type") != "function_call_output":
            break
        shown.insert(0, (names[item["call_id"]], str(item["output"])))
    calls = next_calls(shown) if shown else first_calls(items[-1]["content"])
    if not calls:
        return [assistant_message("; ".join(text for _, text in shown))]
    return [
        function_call(each.tool, json.dumps(each.args), call_id=f"call_{len(items)}_{number}")
        for number, each in enumerate(calls)
    ]


def answer(guard: Guard, task: str, how: str) -> str:
    """Lets the agent do a task, and returns its last message."""
    set_tracing_disabled(True)
    model = ScriptedModel([ModelStep.respond(respond) for _ in range(4)])
    closing = Agent(name="closing", model=model)
    agent = Agent(
        name="billing",
        model=model,
        tools=[function_tool(refund), function_tool(close_account)],
        handoffs=[closing],
    )
    if how == "invoke":
        return str(Runner.run_sync(guarded(agent, guard), task).final_output)
    return asyncio.run(_answer(guarded(agent, guard), task, how))


async def _answer(agent: Agent, task: str, how: str) -> str:
    if how == "stream":
        result = Runner.run_streamed(agent, task)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)
    return str((await Runner.run(agent, task)).final_output)


if __name__ == "__main__":
    run(answer)
