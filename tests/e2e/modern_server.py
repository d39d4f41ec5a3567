"""A server of MCP 2026-07-28, on the real SDK. Prints a line on stderr when it is ready."""

import sys

from mcp.server import MCPServer

server = MCPServer("modern")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


print("ready", file=sys.stderr, flush=True)
server.run("stdio")
