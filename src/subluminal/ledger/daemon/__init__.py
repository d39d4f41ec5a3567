"""`sub ledgerd`: one process per home that owns the ledger. Its death is invisible to shims."""
