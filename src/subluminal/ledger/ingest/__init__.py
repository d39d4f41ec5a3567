"""From lines to rows: follows journals, takes lines from sockets, and folds events into a batch.

Shared by every engine: no SQL here. What ingest must look up in the ledger it asks through
`lookups.Lookups`, which the engine implements; the engine's `store` commits the batch.
"""
