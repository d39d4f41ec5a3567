"""Guards for the tool calls of agent frameworks, each in the framework's own seam.

langchain       `GuardMiddleware(guard)`, for LangChain and LangGraph agents
openai_agents   `guarded(agent, guard)`: tools, MCP servers and handoffs
anthropic       `guarded(tools, guard)`, for the tool runner
pydantic_ai     `GuardCapability(guard)`
mcp             `guarded(client, guard, server=…)`
framework       what they share: one call around a tool of a framework

Each module imports its framework, and says which package to install if it is missing. A refusal is
the framework's own error result in the shim's words, so the model sees the hint. The end of a run
leaves the framework's loop as `RunTerminated`. For other frameworks, decorate the functions with
`guard.tool` of a guard that has `refusals="return"`.
"""
