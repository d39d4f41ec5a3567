"""The Interface Pack as types: A events, B policy bundle, C decisions. No behaviour, no I/O.

Fields marked *additive* are Subluminal's MINOR extensions (Pack 0.1). All others are the Pack's.
Import the module that you need: this package re-exports nothing, so that the shim loads little.
"""

PACK_VERSION = "0.1.0"
"""The value of `v` in every event and every error."""
