"""MCP without a transport: what messages mean, how calls are decided, how refusals are written.

`messages` and `large` read the client's messages, `replies` and `tool_lists` the server's. `calls`
asks the host and keeps `pending` calls; `render` writes refusals. Framing is left to the door.
"""
