"""Finds rules that can never act, and write tools that no rule limits.

A rule never acts if no call can match it, or if a rule above settles every call that it matches.
A bundle may have ten thousand rules, so both searches compare only pairs that a CoverIndex brings
together.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    ArgsMatch,
    DenyRule,
    KernelRule,
    Match,
    NameMatch,
    SequenceRule,
    TagRule,
    TaintRule,
)
from subluminal.contracts.shape import Misfit, did_you_mean
from subluminal.policy.covering import (
    among,
    covers,
    disjoint,
    head_of,
    is_literal,
    matches_every_name,
)
from subluminal.policy.covering_contents import in_range
from subluminal.policy.predicates import same_value

MAX_PAIRS = 500_000
"""Most pairs of rules that one check compares. Lint does not report on the remaining ones."""


class CoverIndex:
    """Matches by the shape of their tool patterns, to find those that may cover another."""

    def __init__(self) -> None:
        self._anywhere: list[int] = []
        self._exact: dict[str, list[int]] = {}
        self._prefix: dict[str, list[int]] = {}

    def add(self, number: int, match: Match) -> None:
        """Adds a match under a number."""
        names = match.tool_name
        if names is None or matches_every_name(names) or names.regex:
            self._anywhere.append(number)
            return
        for glob in names.glob:
            if is_literal(glob):
                self._exact.setdefault(glob, []).append(number)
            else:
                self._prefix.setdefault(head_of(glob), []).append(number)

    def candidates(self, match: Match) -> list[int]:
        """Returns the numbers of all matches that may cover this one, in order. No other does."""
        names = match.tool_name
        found = set(self._anywhere)
        if names is not None and names.glob:
            # All patterns have to be covered, so the candidates for the first one are enough.
            glob = names.glob[0]
            found.update(self._exact.get(glob, ()))
            head = head_of(glob)
            for length in range(len(head) + 1):
                found.update(self._prefix.get(head[:length], ()))
        return sorted(found)


def unreachable_rules(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds rules that no call can match."""
    tags: list[TagRule] = []
    pairs = 0
    for index, rule in enumerate(rules):
        if not rule.enabled:
            continue
        pairs += len(tags) if rule.match.risk_class else 0
        if rule.match.risk_class and pairs <= MAX_PAIRS:
            yield from _missing_classes(rule, index, tags)
        for name, args in (("args", rule.match.args), ("context", rule.match.context)):
            if args is not None:
                yield from _contradictions(args, index, name)
        if isinstance(rule, TagRule):
            tags.append(rule)


def _missing_classes(rule: AnyRule, index: int, tags: list[TagRule]) -> Iterator[Misfit]:
    added = {
        name
        for tag in tags
        if not disjoint(tag.match, rule.match)
        for name in tag.effect.tag.add_risk_class
    }
    if added.isdisjoint(rule.match.risk_class):
        wanted = " or ".join(f"`{name}`" for name in rule.match.risk_class)
        known = sorted(added)
        hint = did_you_mean(rule.match.risk_class[0], known) if known else None
        yield Misfit(
            ("rules", index, "match", "risk_class"),
            f"can never match: no enabled tag rule above adds {wanted} to these tools",
            hint or "put a tag rule that adds the class above this rule",
        )


def _contradictions(args: ArgsMatch, index: int, name: str) -> Iterator[Misfit]:
    for key in dict.fromkeys([*args.key_equals, *args.key_in, *args.numeric_range]):
        if _contradicts(args, key):
            yield Misfit(
                ("rules", index, "match", name),
                f"can never match: the predicates about `{key[:60]}` contradict each other",
                "remove one of them",
            )


def _contradicts(args: ArgsMatch, key: str) -> bool:
    values = args.key_in.get(key)
    if key in args.key_equals:
        if values is not None and not among(args.key_equals[key], values):
            return True
        values = [args.key_equals[key]]
    if values is None:
        return False
    bounds = args.numeric_range.get(key)
    return not any(
        (bounds is None or in_range(value, bounds)) and not _is_excluded(args, key, value)
        for value in values
    )


def _is_excluded(args: ArgsMatch, key: str, value: Any) -> bool:
    return key in args.key_not_equals and same_value(value, args.key_not_equals[key])


def shadowed_rules(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds rules about access that a rule above always precedes (rule-evaluation).

    A kernel rule precedes none: the rules below go on if its pack has no objection.
    """
    above = CoverIndex()
    pairs = 0
    for index, rule in enumerate(rules):
        if not (rule.enabled and isinstance(rule, AllowRule | DenyRule | KernelRule)):
            continue
        candidates = above.candidates(rule.match)
        pairs += len(candidates)
        if pairs > MAX_PAIRS:
            return
        shadow = next((each for each in candidates if _shadows(rules, each, index)), None)
        if shadow is not None:
            yield _shadowed(rules[shadow], index)
        if not isinstance(rule, KernelRule):
            above.add(index, rule.match)


def _shadowed(shadow: AnyRule, index: int) -> Misfit:
    verb = "allows" if isinstance(shadow, AllowRule) else "denies"
    return Misfit(
        ("rules", index),
        f"has no effect: rule `{shadow.rule_id[:60]}` above {verb} every call that it matches",
        "move this rule above that rule, or remove it",
    )


def _shadows(rules: list[AnyRule], above: int, below: int) -> bool:
    match, other = rules[above].match, rules[below].match
    if match.targets is not None and type(rules[above]) is not type(rules[below]):
        # An allow needs every target to match, a deny only one.
        return False
    if match.risk_class and _adds_class(rules[above:below], other.risk_class):
        # A tag between the two may give the lower rule calls that the upper one does not match.
        return False
    return covers(match, other)


def _adds_class(between: list[AnyRule], classes: list[str]) -> bool:
    return any(
        isinstance(rule, TagRule)
        and rule.enabled
        and not set(classes).isdisjoint(rule.effect.tag.add_risk_class)
        for rule in between
    )


_WRITE_LIKE = "write_like"


def unlimited_writes(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds `write_like` tools that no budget, rate limit, breaker, dedupe or deny covers."""
    limits = CoverIndex()
    for index, rule in enumerate(rules):
        if rule.enabled and not isinstance(rule, AllowRule | TagRule | TaintRule | SequenceRule):
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
                f"no rule limits these write tools: {', '.join(free)}",
                "add a budget, rate_limit, breaker or dedupe rule with `risk_class: [write_like]`",
            )


def _as_met(rules: list[AnyRule], limit: int, tag: int) -> Match:
    """Returns the match of a limit for the tools of a tag: below the tag, they have its class."""
    match = rules[limit].match
    if limit > tag and _WRITE_LIKE in match.risk_class:
        return msgspec.structs.replace(match, risk_class=[])
    return match


def _parts(match: Match) -> Iterator[tuple[str, Match]]:
    """Splits a match by its tool patterns: different rules may limit them."""
    names = match.tool_name or NameMatch()
    for glob in names.glob:
        part = msgspec.structs.replace(match, tool_name=NameMatch(glob=[glob]))
        yield f"`{glob[:60]}`", part
    for regex in names.regex:
        part = msgspec.structs.replace(match, tool_name=NameMatch(regex=[regex]))
        yield f"`{regex[:60]}`", part
    if not names.glob and not names.regex:
        yield "every tool that this tag matches", match
