"""Secrets: where their values are read, and how they get into an upstream server's environment.

Reading a value happens in this package and nowhere else (unprintable-secrets). On the shim's way to the start:
keyring and cryptography are imported only where a binding needs them (fast-start).
"""
