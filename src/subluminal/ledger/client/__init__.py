"""Where commands read from: ledgerd over its socket, the ledger itself, or the journals.

The socket is the quick way and loads nothing heavy. Without a daemon the ledger is read directly;
what is not in it yet starts the daemon.
"""
