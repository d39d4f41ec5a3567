"""One change between two policies, and how much it matters. Shared by the modules of this package.

Every value that a person wrote stands in backticks and has none inside, so that a report can be
put into a terminal, a table or a comment as it is.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from subluminal.contracts.vocabulary import SEVERITY_RANK, Severity

LOOSENS = Severity.CRITICAL
TIGHTENS = Severity.WARN
NEUTRAL = Severity.INFO


class Change(Struct, frozen=True, kw_only=True):
    """What differs, in words and as values."""

    kind: str
    """policy_id, version, mode, defaults, selectors, description, owner, created_at, rule_added,
    rule_removed, rule_enabled, rule_disabled, rule_renamed, rule_moved, rule_modified"""
    rule_id: str | None = None
    severity: Severity
    summary: str
    field: str | None = None
    """path inside the policy or rule"""
    old: Any = None
    new: Any = None


def quoted(value: Any) -> str:
    """A value as it stands in a summary: one line of bounded length, in backticks."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    line = " ".join(text.replace("`", "'").split())
    return f"`{line[:80]}…`" if len(line) > 80 else f"`{line}`"


def worst(severities: list[Severity]) -> Severity | None:
    """The most serious of several; None of none."""
    return max(severities, key=SEVERITY_RANK.__getitem__, default=None)


Rank = Callable[[Any], float]
"""How strict a value is: the higher, the stricter."""


def by_rank(rank: Rank | None, old: Any, new: Any) -> Severity:
    """Loosening is critical, tightening a warning, the rest for information."""
    if rank is None or rank(old) == rank(new):
        return NEUTRAL
    return LOOSENS if rank(new) < rank(old) else TIGHTENS
