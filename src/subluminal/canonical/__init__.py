"""Canonical JSON: equal values have equal bytes and an equal hash (Pack 1.9, canonical-profiles).

`parse` reads JSON text strictly, `encode` writes a value in a named profile, `digest` hashes it.
Pure: no I/O, no clock. A caller chooses a profile; there are no flags to combine.
"""

from subluminal.canonical.encoding import Profile, args_hash, digest, encode, new_hash
from subluminal.canonical.parsing import (
    MAX_DEPTH,
    NOT_PLAIN,
    Document,
    may_be_plain,
    parse,
    plain_decoder,
)
from subluminal.errors import AmbiguousJSON

__all__ = [
    "MAX_DEPTH",
    "NOT_PLAIN",
    "AmbiguousJSON",
    "Document",
    "Profile",
    "args_hash",
    "digest",
    "encode",
    "may_be_plain",
    "new_hash",
    "parse",
    "plain_decoder",
]
