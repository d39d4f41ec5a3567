"""Says who gains by a change of a match: which agents, environments, providers or labels."""

from typing import Any

from subluminal.contracts.bundle import Match
from subluminal.policy.covering_agents import covers_list, depth_of, trust_of
from subluminal.policy.diff.changes import quoted

_LISTS = {
    "environment": ("environment", "every environment"),
    "agent_type": ("agents of type", "agents of any type"),
    "agent_roles_any": ("agents with the role", "agents with any role or none"),
    "tool_provider": ("tools of", "tools of any provider"),
    "data_labels_any": ("calls labelled", "calls with any label or none"),
}
"""For each list, the words before its new names, and the words if it asks nothing any more."""


def gained(before: Match, after: Match) -> str:
    """Returns whom `after` matches and `before` does not, in words; empty if nobody is new.

    Looks only at matchers about who acts, and about what was said of a call.
    """
    told = [
        _listed(words, getattr(before, name), getattr(after, name))
        if getattr(after, name)
        else all_
        for name, (words, all_) in _LISTS.items()
        if not covers_list(getattr(before, name), getattr(after, name))
    ]
    if trust_of(after) < trust_of(before):
        least = after.trust_level_min
        told.append(f"agents from trust {quoted(least)}" if least else "agents of any trust")
    if before.registered is not None and before.registered is not after.registered:
        told.append("agents that are not registered" if before.registered else "registered agents")
    if depth_of(after) < depth_of(before):
        told.append(f"agents from depth {quoted(depth_of(after))} of delegation")
    return ", ".join(told)


def _listed(words: str, before: list[Any], after: list[Any]) -> str:
    return f"{words} " + ", ".join(quoted(each) for each in sorted(set(after) - set(before)))
