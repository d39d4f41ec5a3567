"""Subluminal: a semantic firewall and flight recorder for AI agents' tool calls.

Importing this package loads nothing else (fast-start): the shim pays for every import.
"""

__version__ = "0.1.0"
