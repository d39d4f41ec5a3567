"""A guarded session of the MCP SDK, first or second line, with a server behind a shim.

Run as a program, this is the server: the billing tools with either line of the SDK.
"""

import asyncio
import os
import sys
from typing import Any

from billing import POLICY, close_account, refund

from subluminal import Guard, RunTerminated

SHIM = ["-m", "subluminal", "shim", "stdio", "--server", "billing", "--", sys.executable, __file__]


def session() -> None:
    """A refused call, one that carries an id of the program's own, one that fails, and the end."""
    asyncio.run(_session())


async def _session() -> None:
    from mcp import ClientSession, StdioServerParameters, stdio_client

    from subluminal.integrations.mcp import guarded

    with Guard(agent_id="billing", policy=POLICY) as guard:
        environ = {**os.environ, **guard.environ()}
        server = StdioServerParameters(command=sys.executable, args=SHIM, env=environ)
        async with stdio_client(server) as streams, ClientSession(*streams) as plain:
            await plain.initialize()
            client = guarded(plain, guard, server="billing")
            mine = {"subluminal/toolUseId": "mine"}
            _show(await client.call_tool("refund", {"order": "A-7", "amount": 250}))
            _show(await client.call_tool("refund", {"order": "A-7", "amount": 99}, meta=mine))
            _show(await client.call_tool("refund", {"order": "broken", "amount": 1}))
            try:
                await client.call_tool("close_account", {"order": "A-7"})
            except RunTerminated as ended:
                print(ended)


def _show(result: Any) -> None:
    said = result.model_dump(by_alias=True)
    print(said["isError"], said["content"][0]["text"])


def _serve() -> None:
    try:
        from mcp.server.mcpserver import MCPServer as Server
    except ImportError:
        from mcp.server.fastmcp import FastMCP as Server
    server = Server("billing")
    server.tool()(refund)
    server.tool()(close_account)
    server.run()


if __name__ == "__main__":
    _serve()
