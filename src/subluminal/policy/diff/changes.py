"""One change between two policies, and its severity. The modules of this package share it.

Every value that a person wrote is put in backticks and contains none itself, so that a summary is
safe in a terminal, a table or a comment.
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
    """One difference between two policies, in words and as values."""

    kind: str
    """one of: policy_id, version, mode, defaults, selectors, description, owner, created_at,
    expires_at, rule_added, rule_removed, rule_enabled, rule_disabled, rule_renamed, rule_moved,
    rule_modified"""
    rule_id: str | None = None
    """rule that changed; null if the change is not about a rule"""
    severity: Severity
    """critical if the change loosens, warn if it tightens, else info"""
    summary: str
    """the change in words"""
    field: str | None = None
    """path inside the policy or rule"""
    old: Any = None
    """value before"""
    new: Any = None
    """value after"""


def quoted(value: Any) -> str:
    """Returns a value for a summary: one line of at most 80 characters, in backticks."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    line = " ".join(text.replace("`", "'").split())
    return f"`{line[:80]}…`" if len(line) > 80 else f"`{line}`"


def worst(severities: list[Severity]) -> Severity | None:
    """Returns the highest of several severities; None if the list is empty."""
    return max(severities, key=SEVERITY_RANK.__getitem__, default=None)


Rank = Callable[[Any], float]
"""Returns how strict a value is: a higher number is stricter."""


def by_rank(rank: Rank | None, old: Any, new: Any) -> Severity:
    """Returns the severity of a change: critical if it loosens, warn if it tightens, else info."""
    if rank is None or rank(old) == rank(new):
        return NEUTRAL
    return LOOSENS if rank(new) < rank(old) else TIGHTENS
