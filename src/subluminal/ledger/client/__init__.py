"""Reading the ledger: over ledgerd's socket, from the ledger's file, or from the journals.

The command line uses this package; the web page and the SDK will. It prints nothing: functions that
may have to warn the user take a `warn` callback.

`opening` chooses how to reach the ledger and `ledger` declares what can be asked of it. `finding`
turns what a person typed into ids and pages of rows. `live` and `journals` deliver events as they
happen. `http` and `ledgerd` talk to the daemon, and start and stop it.
"""
