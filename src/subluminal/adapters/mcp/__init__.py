"""MCP messages, without a transport and without framing."""
