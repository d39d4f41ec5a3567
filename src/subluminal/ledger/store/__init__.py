"""The SQLite file: opens and migrates it, commits batches to it, and reads stored events back.

SQLite's own SQL: another engine has a `store` of its own for the same rows (`ingest.rows`). What
people and programs ask the ledger is in `query`.
"""
