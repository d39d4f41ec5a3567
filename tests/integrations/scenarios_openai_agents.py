"""OpenAI's Agents SDK: handoffs, MCP servers behind a shim, tools that cannot be guarded."""

import asyncio
import os
import sys
from typing import Any

import with_mcp
from agents import (
    Agent,
    Runner,
    ShellTool,
    UserError,
    WebSearchTool,
    function_tool,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStdio
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from billing import POLICY, refund

from subluminal import Guard
from subluminal.integrations.openai_agents import guarded


def handed_on(who: str) -> None:
    """An agent hands work to another, which hands it back; `who` guards the other."""
    set_tracing_disabled(True)
    asyncio.run(_handed_on(who))


async def _handed_on(who: str) -> None:
    with Guard(agent_id="billing", policy=POLICY) as guard, guard.delegate("refunds") as theirs:
        environ = {**os.environ, **guard.environ()}
        params: Any = {"command": sys.executable, "args": with_mcp.SHIM, "env": environ}
        model = ScriptedModel(
            [
                [function_call("transfer_to_refunds", "{}", call_id="c1")],
                [function_call("refund", '{"order": "A-7", "amount": 250}', call_id="c2")],
                [function_call("transfer_to_billing", "{}", call_id="c3")],
                [function_call("refund", '{"order": "A-7", "amount": 7}', call_id="c4")],
                ModelStep.respond(lambda call: [assistant_message(_last(call))]),
            ]
        )
        async with MCPServerStdio(
            params, name="billing", client_session_timeout_seconds=60
        ) as server:
            refunds = Agent(name="refunds", model=model, tools=[function_tool(refund)])
            billing = Agent(name="billing", model=model, mcp_servers=[server])
            refunds.handoffs = [billing]
            billing.handoffs = [guarded(refunds, theirs) if who == "delegate" else refunds]
            print((await Runner.run(guarded(billing, guard), "go")).final_output)


def _last(call: Any) -> str:
    return str(call.input[-1]["output"])


def unguardable() -> None:
    """Tools of OpenAI's servers pass; a shell is an error."""
    with Guard(policy=POLICY) as guard:
        guarded(Agent(name="a", tools=[WebSearchTool()]), guard)
        try:
            guarded(Agent(name="a", tools=[ShellTool(executor=print)]), guard)
        except UserError as error:
            print(error)


def inner_agents() -> None:
    """An agent as a tool is guarded itself, or it is an error; so is a handoff that comes later."""
    set_tracing_disabled(True)
    call = [function_call("refund", '{"order": "A-7", "amount": 250}', call_id="c2")]
    inner = Agent(
        name="inner",
        model=ScriptedModel([call, ModelStep.respond(lambda c: [assistant_message(_last(c))])]),
        tools=[function_tool(refund)],
    )
    outer = [function_call("ask", '{"input": "go"}', call_id="c1")]
    told = ModelStep.respond(lambda c: [assistant_message(_last(c))])
    with Guard(agent_id="billing", policy=POLICY) as guard:
        for agent in (inner, guarded(inner, guard)):
            tool = agent.as_tool("ask", "asks")
            try:
                made = guarded(
                    Agent(name="a", model=ScriptedModel([outer, told]), tools=[tool]), guard
                )
                print(asyncio.run(Runner.run(made, "go")).final_output)
                made.handoffs.append(inner)
                asyncio.run(Runner.run(made, "go"))
            except UserError as error:
                print(error)
