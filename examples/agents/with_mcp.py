"""A billing agent with tools of an MCP server, without a framework.

The server runs behind a shim, as it would for any client. The guard has decided and recorded each
call before it is sent, so the shim does not do it again.
"""

import asyncio
import os
import sys
from pathlib import Path

from billing import Call, first_calls, next_calls, run
from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from subluminal import Guard, RunTerminated
from subluminal.integrations.mcp import guarded

SERVER = str(Path(__file__).with_name("billing_server.py"))
SHIM = ["-m", "subluminal", "shim", "stdio", "--server", "billing", "--", sys.executable, SERVER]


def answer(guard: Guard, task: str, how: str) -> str:
    """Lets the agent do a task, and returns its last message."""
    return asyncio.run(_answer(guard, task))


async def _answer(guard: Guard, task: str) -> str:
    environ = {**os.environ, **guard.environ()}  # the shim is of the same run
    server = StdioServerParameters(command=sys.executable, args=SHIM, env=environ)
    async with guarded(Client(server), guard, server="billing") as client:

        async def shown(call: Call) -> tuple[str, str]:
            result = await client.call_tool(call.tool, call.args)
            texts = [each.text for each in result.content if isinstance(each, TextContent)]
            return call.tool, " ".join(texts)

        calls = first_calls(task)
        while calls:
            try:
                results = await asyncio.gather(*map(shown, calls))
            except RunTerminated as ended:  # outside of the client it would be in a group
                return f"The run is over: {ended}"
            calls = next_calls(results)
        return "; ".join(text for _, text in results)


if __name__ == "__main__":
    run(answer)
