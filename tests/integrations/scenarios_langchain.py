"""LangGraph: a graph with a ToolNode of its own, and a tool that asks a person."""

import asyncio
from typing import Annotated, Any

from billing import POLICY, close_account, refund
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from with_langchain import Scripted

from subluminal import Guard, RunTerminated
from subluminal.integrations.langchain import GuardMiddleware


def tool_node(how: str) -> None:
    """Prints what the node of a graph returns for two refunds, and for an account."""
    with Guard(agent_id="billing", policy=POLICY) as guard:
        middleware = GuardMiddleware(guard)
        graph: Any = StateGraph(MessagesState)
        node = ToolNode(
            [refund, close_account],
            wrap_tool_call=middleware.wrap_tool_call,
            awrap_tool_call=middleware.awrap_tool_call,
        )
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        graph.add_edge("tools", END)
        made = graph.compile()

        def ask(*calls: tuple[str, dict[str, Any]]) -> Any:
            wanted = [{"name": name, "args": args, "id": name} for name, args in calls]
            given = {"messages": [AIMessage("", tool_calls=wanted)]}
            return asyncio.run(made.ainvoke(given)) if how == "async" else made.invoke(given)

        small, large = {"order": "A-7", "amount": 1}, {"order": "A-7", "amount": 250}
        for message in ask(("refund", small), ("refund", large))["messages"][1:]:
            print(message.status, message.text)
        try:
            ask(("close_account", {"order": "A-7"}))
        except RunTerminated as ended:
            print(ended)


def interrupted(how: str) -> None:
    """A tool asks a person in the middle, and runs again with the answer."""

    def ask(order: str) -> str:
        """Asks."""
        return f"a person said {interrupt('sure?')}"

    with Guard(agent_id="billing", policy=POLICY) as guard:
        agent: Any = create_agent(
            Scripted(), [ask], middleware=[GuardMiddleware(guard)], checkpointer=InMemorySaver()
        )
        thread = {"configurable": {"thread_id": "1"}}

        def go(given: Any) -> Any:
            if how == "async":
                return asyncio.run(agent.ainvoke(given, thread))
            return agent.invoke(given, thread)

        print(go({"messages": [{"role": "user", "content": "ask A-7"}]})["__interrupt__"][0].value)
        print(go(Command(resume="yes"))["messages"][-1].text)


def several() -> None:
    """A tool returns a message and an update; nothing that it did is lost."""

    def both(tool_call_id: Annotated[str, InjectedToolCallId]) -> list[Any]:
        """Does."""
        return [ToolMessage("done", tool_call_id=tool_call_id), Command(update={"messages": []})]

    with Guard(agent_id="billing", policy=POLICY) as guard:
        node = ToolNode([both], wrap_tool_call=GuardMiddleware(guard).wrap_tool_call)
        graph: Any = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        wanted = AIMessage("", tool_calls=[{"name": "both", "args": {}, "id": "c1"}])
        print(graph.compile().invoke({"messages": [wanted]})["messages"][-1].text)
