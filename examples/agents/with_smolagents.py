"""A billing agent with smolagents, which has no seam for a guard: its functions are decorated.

With `refusals="return"` the model reads a refusal as the result of the tool.
"""

from typing import Any

from billing import close_account, first_calls, next_calls, refund, run
from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

from subluminal import Guard


class Scripted(Model):
    """A model that reads its messages, and nothing else."""

    def __init__(self) -> None:
        super().__init__(model_id="scripted")
        self.wanted: list[str] = []

    def generate(self, messages: list[Any], *more: Any, **options: Any) -> ChatMessage:
        said = str(messages[-1].content[0]["text"]).removeprefix("Observation:\n").strip()
        if messages[-1].role == MessageRole.TOOL_RESPONSE:
            calls = next_calls(zip(self.wanted, said.split("\n"), strict=False))
        else:
            calls = first_calls(said.removeprefix("New task:"))
        self.wanted = [call.tool for call in calls]
        wanted = [(call.tool, call.args) for call in calls]
        made = [
            ChatMessageToolCall(
                ChatMessageToolCallFunction(args, name), f"call_{number}", "function"
            )
            for number, (name, args) in enumerate(wanted or [("final_answer", {"answer": said})])
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=made)


def answer(guard: Guard, task: str, how: str) -> str:
    """Lets the agent do a task, and returns its last message."""
    tools = [tool(guard.tool(refund)), tool(guard.tool(close_account))]
    agent = ToolCallingAgent(tools=tools, model=Scripted(), verbosity_level=0, max_steps=4)
    return str(agent.run(task))


if __name__ == "__main__":
    run(answer, refusals="return")
