"""What is wrong with a bundle although its shape is right: values that no policy can mean.

A bundle with a misfit is not compiled, so a rule never does silently less than it says (rule-evaluation).
`checks` looks inside one rule.
"""

from collections.abc import Iterator

from subluminal.contracts.bundle import AnyRule, Bundle
from subluminal.contracts.limits import MAX_RULES
from subluminal.contracts.shape import Misfit
from subluminal.policy.checks.effects import effect_misfits
from subluminal.policy.checks.matches import match_misfits


def semantic_misfits(bundle: Bundle) -> list[Misfit]:
    """Returns every impossible value; empty if the bundle can be compiled."""
    if len(bundle.rules) > MAX_RULES:
        return [Misfit(("rules",), f"{len(bundle.rules)} rules; at most {MAX_RULES} are read")]
    found = [*_blank_names(bundle), *_duplicate_ids(bundle.rules)]
    for index, rule in enumerate(bundle.rules):
        found += rule_misfits(rule, index)
    return found


def rule_misfits(rule: AnyRule, index: int) -> list[Misfit]:
    """Returns what is wrong with one rule, wherever it stands."""
    found = list(match_misfits(rule.match)) + list(effect_misfits(rule))
    if not rule.rule_id.strip():
        found.append(Misfit(("rule_id",), "must not be empty"))
    return [misfit._replace(path=("rules", index, *misfit.path)) for misfit in found]


def _blank_names(bundle: Bundle) -> Iterator[Misfit]:
    for name in ("policy_id", "version"):
        if not getattr(bundle, name).strip():
            yield Misfit((name,), "must not be empty")


def _duplicate_ids(rules: list[AnyRule]) -> Iterator[Misfit]:
    first: dict[str, int] = {}
    for index, rule in enumerate(rules):
        # Blank ids have a misfit of their own.
        if rule.rule_id.strip() and first.setdefault(rule.rule_id, index) != index:
            hint = f"rule {first[rule.rule_id] + 1} has it already"
            yield Misfit(("rules", index, "rule_id"), "duplicate rule_id", hint)
