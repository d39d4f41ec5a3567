"""Reads the ledger: calls, runs, hints, facets. Every list is paged by key, none by offset.

Plain functions over a read-only connection; the HTTP API and commands without a daemon share them.
"""
