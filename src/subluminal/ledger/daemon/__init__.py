"""`sub ledgerd`: the one process of a home that owns the ledger. Shims do not notice if it dies.

Here are its lock and note, its sockets, its threads (the writer, the roll call), and the server.
"""
