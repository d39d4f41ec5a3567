"""Housekeeping: retention, deferred indexing and packing, signed checkpoints.

The writer does it between batches, in small steps, so that ingest never waits long. SQLite's own
SQL, like `store`.
"""
