"""The DVR's memory: everything that shims journalled, stored, searchable, live and provable.

One writer owns `ledger.db`; readers open it read-only. Nothing here is on the hot path, and the hot
path cannot reach it. Needs the `daemon` extra; import the module you need.
"""
