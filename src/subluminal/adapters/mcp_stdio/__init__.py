"""The door for MCP servers on stdio: `sub shim stdio` (Pack 7.3, byte-transparent, no-orphans).

`entry` and `starting` start the server, `assembly` puts the shim together, `shim` runs the loop.
`requests` with `client_lines` is the client's side, `server_lines` the server's; `outlet` writes to
either. `ending` stops the server. What messages mean is in `adapters.mcp`.
"""
