"""HTTP over the ledger: queries, the live stream, ingest, metrics. Knows no daemon, no files."""
