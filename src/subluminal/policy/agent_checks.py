"""Finds values that no policy can mean in the matchers about who acts."""

from collections.abc import Iterator

from subluminal.contracts.bundle import Match
from subluminal.contracts.shape import Misfit
from subluminal.policy.bounds import amount_misfits

_NAMES = ("environment", "agent_type", "agent_roles_any", "tool_provider", "data_labels_any")


def agent_misfits(match: Match) -> Iterator[Misfit]:
    """Checks the matchers about who acts and about what was said. Paths begin at the rule."""
    for name in _NAMES:
        for index, word in enumerate(getattr(match, name)):
            if not word.strip():
                yield Misfit(("match", name, index), "must not be empty")
    yield from amount_misfits(match.delegation_depth_min, 0, ("match", "delegation_depth_min"))
