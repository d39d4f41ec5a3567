"""Client configurations: find them, wrap their MCP servers with shims, back up, restore (spec 13).

This is surgery on files that other programs own. What is not ours to change keeps its bytes: `text`
finds the spans of values, `clients` says where each client keeps what, `wrapping` and `unwrapping`
make edits, `files` and `backups` put them on disk. Nothing here starts a client or a server.
"""
