"""HTTP over the ledger: queries, the live stream, ingest, status and metrics.

Knows neither the process that serves it nor its sockets: `daemon` puts them together.
"""
