"""What the ledger does when nobody waits: retention, packing, indexing, checkpoints."""
