"""A server on the MCP SDK 2.x: both eras, a failing tool, and a tool that asks for input."""

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server = MCPServer("modern", instructions="a server for tests")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Always fails."""
    raise ValueError(why)


@server.tool()
async def confirm(what: str, ctx: Context) -> str | InputRequiredResult:
    """Asks before it answers."""
    if not ctx.input_responses:
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        params = ElicitRequestFormParams(message=f"{what}?", requested_schema=schema)
        return InputRequiredResult(
            input_requests={"sure": ElicitRequest(params=params)}, request_state="round-1"
        )
    return f"{what}: confirmed"


@server.resource("note://one")
def note() -> str:
    """A resource."""
    return "first note"


@server.prompt()
def greet(name: str) -> str:
    """A prompt."""
    return f"Say hello to {name}"


server.run("stdio")
