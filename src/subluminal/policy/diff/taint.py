"""Finds what a change of taint rules means: a run that is lowered less passes more rules."""

from subluminal.contracts.bundle import AnyRule, Bundle, TaintRule
from subluminal.contracts.vocabulary import TAINT_RANK, Severity, Taint
from subluminal.policy.covering import disjoint
from subluminal.policy.diff.changes import LOOSENS, TIGHTENS, quoted


def level_rank(level: Taint | None) -> int:
    """Ranks a level: a lower level is stricter. A missing one is SYSTEM."""
    return 0 if level is None else TAINT_RANK[level]


def exempts(upper: AnyRule, lower: AnyRule) -> bool:
    """Whether a taint rule may keep calls from a taint rule below it that lowers further."""
    return (
        isinstance(upper, TaintRule)
        and isinstance(lower, TaintRule)
        and level_rank(upper.effect.taint.lower_to) < level_rank(lower.effect.taint.lower_to)
        and not disjoint(upper.match, lower.match)
    )


def taint_effect(rule: TaintRule, bundle: Bundle, *, adding: bool) -> tuple[Severity, str]:
    """Returns the severity of adding a taint rule to these rules, or of removing it, and why."""
    below = bundle.rules[bundle.rules.index(rule) + 1 :]
    spared = next((each for each in below if each.enabled and exempts(rule, each)), None)
    if spared is not None and (adding or rule.effect.taint.lower_to is Taint.SYSTEM):
        why = f": it comes before {quoted(spared.rule_id)}, which lowers further"
        return (LOOSENS if adding else TIGHTENS), why
    if rule.effect.taint.lower_to is Taint.SYSTEM:
        return (LOOSENS if adding else TIGHTENS), ""
    return (TIGHTENS if adding else LOOSENS), ""
