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
from subluminal.policy.lint.index import MAX_PAIRS, CoverIndex

_WRITE_LIKE = "write_like"


def unlimited_writes(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds `write_like` tags whose tools no budget, rate limit, breaker, dedupe or deny covers."""
    limits = CoverIndex()
    for index, rule in enumerate(rules):
        if rule.enabled and not isinstance(rule, AllowRule | TagRule):
            limits.add(index, rule.match)
    pairs = 0
    for index, rule in enumerate(rules):
        if not (isinstance(rule, TagRule) and rule.enabled):
            continue
        if _WRITE_LIKE not in rule.effect.tag.add_risk_class:
            continue
        free = []
        for name, match in _parts(rule.match):
            candidates = limits.candidates(match)
            pairs += len(candidates)
            if pairs > MAX_PAIRS:
                return
            if not any(covers(_as_met(rules, each, index), match) for each in candidates):
                free.append(name)
        if free:
            yield Misfit(
                ("rules", index, "match"),
                f"write tools without a limit: {', '.join(free)}",
                "add a budget, rate_limit, breaker or dedupe rule with `risk_class: [write_like]`",
            )


def _as_met(rules: list[AnyRule], limit: int, tag: int) -> Match:
    """A limit's match as the tools of a tag meet it: below the tag, its class is given."""
    match = rules[limit].match
    if limit > tag and _WRITE_LIKE in match.risk_class:
        return msgspec.structs.replace(match, risk_class=[])
    return match


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
