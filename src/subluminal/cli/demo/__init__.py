"""Behind `sub demo`: a small MCP server, a scripted agent, a policy, and the stage for them."""
