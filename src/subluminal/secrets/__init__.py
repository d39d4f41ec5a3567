"""Secrets: reading their values, and setting them in an upstream server's environment.

Values are read in this package and nowhere else (unprintable-secrets). A shim needs it before it
can start its server, so keyring and cryptography are imported only where a binding needs them
(fast-start).
"""
