"""The billing tools as an MCP server, for `with_mcp.py` and `with_openai_agents.py`."""

from billing import close_account, refund
from mcp.server.mcpserver import MCPServer

server = MCPServer("billing")
server.tool()(refund)
server.tool()(close_account)

if __name__ == "__main__":
    server.run()
