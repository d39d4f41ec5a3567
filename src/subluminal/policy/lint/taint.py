"""Finds rules about the run's level that do less than they seem to."""

from collections.abc import Iterator

from subluminal.contracts.bundle import AnyRule, Bundle, KernelRule, TaintRule
from subluminal.contracts.shape import Misfit
from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.policy.covering import covers


def taint_remarks(bundle: Bundle) -> Iterator[Misfit]:
    """Finds `below` that nothing reaches, and taint rules that never count."""
    lowering = [rule for rule in bundle.rules if isinstance(rule, TaintRule) and rule.enabled]
    levels = [rule.effect.taint.lower_to for rule in lowering]
    start = bundle.defaults.taint
    reached = max((TAINT_RANK[each] for each in [*levels, start or Taint.SYSTEM]), default=0)
    for index, rule in enumerate(bundle.rules):
        match = rule.match.taint
        if rule.enabled and match is not None and TAINT_RANK[match.below] >= reached:
            yield Misfit(
                ("rules", index, "match", "taint", "below"),
                f"no enabled taint rule, and no `defaults.taint`, lowers a run below {match.below}",
                "add a taint rule for the tools that read text of others",
            )
    for rule in lowering:
        targets = rule.match.targets
        if targets is not None and targets.opaque and rule.effect.taint.lower_to is Taint.SYSTEM:
            yield Misfit(
                ("rules", bundle.rules.index(rule), "match", "targets", "opaque"),
                "can never match: an exemption needs everything that a call touches to be known",
                "remove `opaque`",
            )
    if lowering and not any(_looks_at_level(rule) for rule in bundle.rules if rule.enabled):
        yield Misfit(
            ("rules", bundle.rules.index(lowering[0])),
            "lowers the run, and no enabled rule of this policy has `match.taint`",
            "add a deny with `taint: {below: TRUSTED}` and `require: human`",
        )
    yield from _preceded(bundle, lowering)


def _looks_at_level(rule: AnyRule) -> bool:
    """Whether a rule decides by the level. A pack is told if the run is below TRUSTED."""
    return rule.match.taint is not None or isinstance(rule, KernelRule)


def _preceded(bundle: Bundle, rules: list[TaintRule]) -> Iterator[Misfit]:
    for place, rule in enumerate(rules[:_MOST]):
        above = next((each for each in rules[:place] if _precedes(each, rule)), None)
        if above is not None:
            yield Misfit(
                ("rules", bundle.rules.index(rule)),
                f"has no effect: taint rule `{above.rule_id[:60]}` above matches every call that it"
                " matches",
                "move this rule above that rule, or remove it",
            )


_MOST = 500
"""Most taint rules that are compared with each other."""


def _precedes(above: TaintRule, rule: TaintRule) -> bool:
    # A tag between the two may give the lower rule calls that the upper one does not match.
    return not above.match.risk_class and covers(above.match, rule.match)
