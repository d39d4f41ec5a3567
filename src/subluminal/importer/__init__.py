"""Client configurations: wrap their MCP servers with shims, add hooks, back up, restore (spec 13).

These files belong to other programs, so every byte that need not change is kept. `clients` says
where each client keeps its servers, `text` finds the span of each value, `document` is one parsed
file, `wrapping` makes the edits, and `hooks` those for hooks. `proposal` works out what an import
would do and `checking` proves it; `importing` and `restoring` do it, with `files` and `backups`.
`binding` moves secrets out, and `drift` finds what changed since. `expected` says which servers a
client would start, with the options of `command_line`. Nothing here starts a client or a server.
"""
