"""The door for MCP servers on stdio: `sub shim stdio` (Pack 7.3, byte-transparent, no-orphans).

`entry` starts, `shim` runs the loop; `messages` and `replies` read the two directions, `large` and
`spool` hold what is too large to inspect, `render` writes our refusals. All eras of MCP pass
untouched: only `tools/call` and its answers are looked at.
"""
