"""The Interface Pack as types: A events, B policy bundle, C decisions. No behaviour, no I/O.

Fields marked *additive* are our MINOR extensions (Pack 0.1); everything else is the Pack's own.
Import the module you need; this package re-exports nothing, so that the shim loads little.
"""

PACK_VERSION = "0.1.0"
"""Stamped on every event and error as `v`."""
