"""A billing agent with LlamaIndex, which has no seam for a guard: its functions are decorated.

With `refusals="return"` the model reads a refusal as the result of the tool.
"""

import asyncio
from typing import Any

from billing import close_account, first_calls, next_calls, refund, run
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection

from subluminal import Guard


class Scripted(FunctionCallingLLM):
    """A model that reads its messages, and nothing else."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, *more: Any, **options: Any
    ) -> dict[str, Any]:
        return {"messages": chat_history or []}

    async def achat(self, messages: Any, **more: Any) -> ChatResponse:
        shown: list[tuple[str, str]] = []
        for message in reversed(messages):
            if message.role is not MessageRole.TOOL:
                break
            shown.insert(0, (message.additional_kwargs["tool_call_id"], str(message.content)))
        named = [(tool_id.split("_", 2)[2], text) for tool_id, text in shown]
        calls = next_calls(named) if shown else first_calls(str(messages[-1].content))
        said = "; ".join(text for _, text in shown)
        wanted = [
            {"id": f"call_{number}_{call.tool}", "name": call.tool, "args": call.args}
            for number, call in enumerate(calls)
        ]
        answer = ChatMessage(role=MessageRole.ASSISTANT, content=said)
        answer.additional_kwargs["tool_calls"] = wanted
        return ChatResponse(message=answer)

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **more: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=each["id"], tool_name=each["name"], tool_kwargs=each["args"])
            for each in response.message.additional_kwargs["tool_calls"]
        ]

    def chat(self, messages: Any, **more: Any) -> ChatResponse:
        return asyncio.run(self.achat(messages))

    def stream_chat(self, messages: Any, **more: Any) -> Any:
        raise NotImplementedError

    def complete(self, prompt: str, formatted: bool = False, **more: Any) -> Any:
        raise NotImplementedError

    stream_complete = acomplete = astream_complete = complete

    async def astream_chat(self, messages: Any, **more: Any) -> Any:
        raise NotImplementedError


def answer(guard: Guard, task: str, how: str) -> str:
    """Lets the agent do a task, and returns its last message."""
    tools: list[Any] = [guard.tool(refund), guard.tool(close_account)]
    agent = FunctionAgent(tools=tools, llm=Scripted(), streaming=False)

    async def ask() -> str:
        return str(await agent.run(user_msg=task))

    return asyncio.run(ask())


if __name__ == "__main__":
    run(answer, refusals="return")
