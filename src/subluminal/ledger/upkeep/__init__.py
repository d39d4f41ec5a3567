"""Housekeeping: retention, deferred indexing and packing, signed checkpoints, anchors, rebuilding.

The writer does it between batches, in small steps, so that ingest never waits long. SQLite's own
SQL, like `store`.
"""
