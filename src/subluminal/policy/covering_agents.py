"""Compares what two matches say about who acts, and about what was said of a call.

For lint and diff, as `policy.covering`: True is proven, False means only that no proof was found.
"""

from collections.abc import Sequence

from subluminal.contracts.bundle import Match
from subluminal.contracts.vocabulary import TRUST_RANK, TrustLevel

_ANY_OF = ("environment", "agent_type", "agent_roles_any", "tool_provider", "data_labels_any")
"""Lists of which one value is enough. An empty list asks nothing."""
_ONE_OF = ("environment", "agent_type", "tool_provider")
"""Those of which a call has only one value."""


def covers_agents(wide: Match, narrow: Match) -> bool:
    """Whether `wide` matches every agent and provider, and all labels, that `narrow` matches."""
    return (
        all(covers_list(getattr(wide, name), getattr(narrow, name)) for name in _ANY_OF)
        and (wide.registered is None or wide.registered is narrow.registered)
        and trust_of(wide) <= trust_of(narrow)
        and depth_of(wide) <= depth_of(narrow)
    )


def covers_list(wide: Sequence[str], narrow: Sequence[str]) -> bool:
    """Whether a list of alternatives has every alternative of another."""
    return not wide or (bool(narrow) and set(narrow) <= set(wide))


def trust_of(match: Match) -> int:
    """Returns the rank of the least trust that a match asks for."""
    return TRUST_RANK[match.trust_level_min or TrustLevel.UNTRUSTED]


def depth_of(match: Match) -> int:
    """Returns the least depth of delegation that a match asks for."""
    return match.delegation_depth_min or 0


def disjoint_agents(left: Match, right: Match) -> bool:
    """Whether no call can match both, because of who acts or of what provides the tool."""
    asked = (left.registered, right.registered)
    return (None not in asked and asked[0] is not asked[1]) or any(
        _disjoint(getattr(left, name), getattr(right, name)) for name in _ONE_OF
    )


def _disjoint(left: Sequence[str], right: Sequence[str]) -> bool:
    return bool(left) and bool(right) and set(left).isdisjoint(right)
