"""A billing agent with LangChain. A real model takes the place of `Scripted`."""

import asyncio
from typing import Any

from billing import Call, close_account, first_calls, next_calls, refund, run
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from subluminal import Guard
from subluminal.integrations.langchain import GuardMiddleware


class Scripted(BaseChatModel):
    """A model that reads its messages, and nothing else."""

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **more: Any
    ) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            shown: list[tuple[str, str]] = []
            for message in reversed(messages):
                if not isinstance(message, ToolMessage):
                    break
                shown.insert(0, (str(message.name), message.text))
            calls, said = next_calls(shown), "; ".join(text for _, text in shown)
        else:
            calls, said = first_calls(messages[-1].text), ""
        return ChatResult(generations=[ChatGeneration(message=_message(calls, said, messages))])

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> "Scripted":
        return self


def _message(calls: list[Call], said: str, messages: list[BaseMessage]) -> AIMessage:
    wanted = [
        {"name": call.tool, "args": call.args, "id": f"call_{len(messages)}_{number}"}
        for number, call in enumerate(calls)
    ]
    return AIMessage(said, tool_calls=wanted)


def answer(guard: Guard, task: str, how: str) -> str:
    """Lets the agent do a task, and returns its last message."""
    agent: Any = create_agent(
        Scripted(), [refund, close_account], middleware=[GuardMiddleware(guard)]
    )
    given = {"messages": [{"role": "user", "content": task}]}
    if how == "async":
        return str(asyncio.run(agent.ainvoke(given))["messages"][-1].text)
    if how == "stream":
        said = ""
        for state in agent.stream(given, stream_mode="values"):
            said = state["messages"][-1].text
        return said
    if how == "astream":
        return asyncio.run(_streamed(agent, given))
    return str(agent.invoke(given)["messages"][-1].text)


async def _streamed(agent: Any, given: Any) -> str:
    said = ""
    async for state in agent.astream(given, stream_mode="values"):
        said = state["messages"][-1].text
    return said


if __name__ == "__main__":
    run(answer)
