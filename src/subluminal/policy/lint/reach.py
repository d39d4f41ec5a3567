"""Rules that can never act: nothing can match them, or a rule above settles all they match."""

from collections.abc import Iterator

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    ArgsMatch,
    DenyRule,
    NameMatch,
    TagRule,
)
from subluminal.contracts.shape import Misfit, did_you_mean
from subluminal.policy.covering import among, covers, disjoint, in_range, is_literal

MAX_PAIRS = 2_000_000
"""Pairs of rules compared for shadowing; past it the rest of a huge bundle is not looked at."""


def unreachable_rules(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds rules whose match cannot hold for any call."""
    tags: list[TagRule] = []
    for index, rule in enumerate(rules):
        if not rule.enabled:
            continue
        if rule.match.risk_class:
            yield from _missing_classes(rule, index, tags)
        if rule.match.args is not None:
            yield from _contradictions(rule.match.args, index)
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
            hint or "put a tag rule above this one",
        )


def _contradictions(args: ArgsMatch, index: int) -> Iterator[Misfit]:
    for key in dict.fromkeys([*args.key_equals, *args.key_in, *args.numeric_range]):
        if _contradicts(args, key):
            yield Misfit(
                ("rules", index, "match", "args"),
                f"can never match: the predicates on `{key[:60]}` exclude each other",
            )


def _contradicts(args: ArgsMatch, key: str) -> bool:
    values = args.key_in.get(key)
    if key in args.key_equals:
        if values is not None and not among(args.key_equals[key], values):
            return True
        values = [args.key_equals[key]]
    bounds = args.numeric_range.get(key)
    if values is None or bounds is None:
        return False
    return not any(in_range(value, bounds) for value in values)


def shadowed_rules(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds allow and deny rules below one that already settles everything they match (D10)."""
    access = [
        (index, rule)
        for index, rule in enumerate(rules)
        if rule.enabled and isinstance(rule, AllowRule | DenyRule)
    ]
    seen = _Above()
    pairs = 0
    for index, rule in access:
        for above, other in seen.candidates(rule):
            pairs += 1
            if _shadows(rules, above, index):
                verb = "allows" if isinstance(other, AllowRule) else "denies"
                yield Misfit(
                    ("rules", index),
                    f"can never act: rule `{other.rule_id[:60]}` above {verb} all that it matches",
                    "move it above that rule, or remove it",
                )
                break
        if pairs > MAX_PAIRS:
            return
        seen.add(index, rule)


Access = AllowRule | DenyRule


class _Above:
    """The access rules so far, by tool name where they name whole tools."""

    def __init__(self) -> None:
        self._wide: list[tuple[int, Access]] = []
        self._exact: dict[str, list[tuple[int, Access]]] = {}

    def add(self, index: int, rule: Access) -> None:
        names = _whole_names(rule.match.tool_name)
        if names is None:
            self._wide.append((index, rule))
            return
        for name in names:
            self._exact.setdefault(name, []).append((index, rule))

    def candidates(self, rule: Access) -> list[tuple[int, Access]]:
        """The rules that may cover this one; a list of whole names covers whole names only."""
        names = _whole_names(rule.match.tool_name)
        return self._wide + (self._exact.get(names[0], []) if names else [])


def _whole_names(names: NameMatch | None) -> list[str] | None:
    if names is None or names.regex or not names.glob:
        return None
    return names.glob if all(is_literal(glob) for glob in names.glob) else None


def _shadows(rules: list[AnyRule], above: int, below: int) -> bool:
    match, other = rules[above].match, rules[below].match
    if match.risk_class and _adds_class(rules[above:below], other.risk_class):
        # A tag between them may give the lower rule calls that the upper one does not see.
        return False
    return covers(match, other)


def _adds_class(between: list[AnyRule], classes: list[str]) -> bool:
    return any(
        isinstance(rule, TagRule)
        and rule.enabled
        and not set(classes).isdisjoint(rule.effect.tag.add_risk_class)
        for rule in between
    )
