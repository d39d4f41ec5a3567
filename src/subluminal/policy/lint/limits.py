"""Write tools that a policy knows as such and leaves without any limit."""

from collections.abc import Iterator

import msgspec

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    Match,
    NameMatch,
    TagRule,
)
from subluminal.contracts.shape import Misfit
from subluminal.policy.covering import covers

_WRITE_LIKE = "write_like"


def unlimited_writes(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds `write_like` tags whose tools no budget, rate limit, breaker, dedupe or deny covers."""
    for index, rule in enumerate(rules):
        if not (isinstance(rule, TagRule) and rule.enabled):
            continue
        if _WRITE_LIKE not in rule.effect.tag.add_risk_class:
            continue
        limits = _limits(rules, index)
        free = [
            name
            for name, match in _parts(rule.match)
            if not any(covers(limit, match) for limit in limits)
        ]
        if free:
            yield Misfit(
                ("rules", index, "match"),
                f"write tools without a limit: {', '.join(free)}",
                "add a budget, rate_limit, breaker or dedupe rule with `risk_class: [write_like]`",
            )


def _limits(rules: list[AnyRule], tag_index: int) -> list[Match]:
    """The matches of all limiting rules, as the tools of one tag meet them."""
    found = []
    for index, rule in enumerate(rules):
        if not rule.enabled or isinstance(rule, AllowRule | TagRule):
            continue
        if index > tag_index and _WRITE_LIKE in rule.match.risk_class:
            found.append(msgspec.structs.replace(rule.match, risk_class=[]))
        else:
            found.append(rule.match)
    return found


def _parts(match: Match) -> Iterator[tuple[str, Match]]:
    """One match for each tool pattern: each may be limited by another rule."""
    names = match.tool_name or NameMatch()
    for glob in names.glob:
        part = msgspec.structs.replace(match, tool_name=NameMatch(glob=[glob]))
        yield f"`{glob[:60]}`", part
    for regex in names.regex:
        part = msgspec.structs.replace(match, tool_name=NameMatch(regex=[regex]))
        yield f"`{regex[:60]}`", part
    if not names.glob and not names.regex:
        yield "every tool it matches", match
