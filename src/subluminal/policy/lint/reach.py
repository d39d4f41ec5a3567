"""Rules that can never act: nothing can match them, or a rule above settles all they match."""

from collections.abc import Iterator

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    ArgsMatch,
    DenyRule,
    TagRule,
)
from subluminal.contracts.shape import Misfit, did_you_mean
from subluminal.policy.covering import among, covers, disjoint, in_range
from subluminal.policy.lint.index import MAX_PAIRS, CoverIndex


def unreachable_rules(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds rules whose match cannot hold for any call."""
    tags: list[TagRule] = []
    pairs = 0
    for index, rule in enumerate(rules):
        if not rule.enabled:
            continue
        pairs += len(tags) if rule.match.risk_class else 0
        if rule.match.risk_class and pairs <= MAX_PAIRS:
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
    """Finds allow and deny rules below one that already settles everything they match (rule-evaluation)."""
    above = CoverIndex()
    pairs = 0
    for index, rule in enumerate(rules):
        if not (rule.enabled and isinstance(rule, AllowRule | DenyRule)):
            continue
        candidates = above.candidates(rule.match)
        pairs += len(candidates)
        if pairs > MAX_PAIRS:
            return
        shadow = next((each for each in candidates if _shadows(rules, each, index)), None)
        if shadow is not None:
            yield _shadowed(rules[shadow], index)
        above.add(index, rule.match)


def _shadowed(shadow: AnyRule, index: int) -> Misfit:
    verb = "allows" if isinstance(shadow, AllowRule) else "denies"
    return Misfit(
        ("rules", index),
        f"can never act: rule `{shadow.rule_id[:60]}` above {verb} all that it matches",
        "move it above that rule, or remove it",
    )


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
