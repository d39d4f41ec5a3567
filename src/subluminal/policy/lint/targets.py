"""Finds rules about targets that do less than they seem to."""

from collections.abc import Iterator

from subluminal.contracts.bundle import AllowRule, AnyRule, TargetsMatch
from subluminal.contracts.shape import Misfit
from subluminal.policy.covering import matches_every_name


def target_remarks(rules: list[AnyRule]) -> Iterator[Misfit]:
    """Finds policies that are silent about opaque calls, and fields without an effect."""
    asking = [
        (index, rule.match.targets)
        for index, rule in enumerate(rules)
        if rule.enabled and rule.match.targets is not None
    ]
    if asking and not any(targets.opaque for _, targets in asking):
        yield Misfit(
            ("rules", asking[0][0], "match", "targets"),
            "no enabled rule says what happens to opaque calls, whose targets cannot be told",
            "add a deny with `targets: {opaque: true}` and `require: approval`, or tag them",
        )
    for index, targets in asking:
        yield from _idle_fields(targets, ("rules", index, "match", "targets"), rules[index])


def _idle_fields(
    targets: TargetsMatch, path: tuple[str | int, ...], rule: AnyRule
) -> Iterator[Misfit]:
    if targets.path is not None and set(targets.access) == {"read", "write"}:
        yield Misfit((*path, "access"), "has no effect: it names every access", "remove it")
    if isinstance(rule, AllowRule):
        return  # there, a field also says which kinds of targets the rule is about
    for name in ("program", "argv", "host"):
        names = getattr(targets, name)
        beside = {"program": targets.argv, "argv": targets.program}.get(name)
        if names is not None and beside is not None and matches_every_name(names):
            yield Misfit((*path, name), "has no effect: it matches every command", "remove it")
