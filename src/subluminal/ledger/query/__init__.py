"""Reads the ledger: calls, runs, hints, approvals, tools, policies, counts, events.

Plain functions over a read-only connection. The HTTP API uses them, and so do commands that find no
daemon. Every list is paged by key, never by offset.

`questions` (what may be asked, paging) and `records` (how answers look) have no SQL, and every
engine shares them. The other modules are SQLite's: another engine writes its own, which take the
same questions and return the same records.
"""
