"""What a rule means to the rules around it: whom an allow shields, who uses a tag's classes."""

from subluminal.contracts.bundle import AllowRule, AnyRule, DenyRule, TagRule
from subluminal.contracts.vocabulary import Severity
from subluminal.policy.covering import disjoint
from subluminal.policy.diff.changes import LOOSENS, NEUTRAL, TIGHTENS, quoted

_READ_LIKE = "read_like"
"""The class that `fail_open_read_tools` lets pass."""


def kind_of(rule: AnyRule) -> str:
    """The rule's kind, as it is written."""
    return str(rule.__struct_config__.tag)


def may_shield(allow: AnyRule, deny: AnyRule) -> bool:
    """Whether an allow above a deny may let something pass that the deny refuses."""
    return (
        isinstance(allow, AllowRule)
        and isinstance(deny, DenyRule)
        and not disjoint(allow.match, deny.match)
    )


def shields(allow: AllowRule, rules: list[AnyRule]) -> str | None:
    """The first enabled deny below that an allow may shield from."""
    below = rules[rules.index(allow) + 1 :]
    return next((rule.rule_id for rule in below if rule.enabled and may_shield(allow, rule)), None)


def uses(rule: AnyRule, classes: list[str]) -> bool:
    """Whether a rule's match asks for one of these risk classes."""
    return rule.enabled and not set(classes).isdisjoint(rule.match.risk_class)


def class_effect(
    tag: TagRule, classes: list[str], rules: list[AnyRule], *, adding: bool
) -> tuple[Severity, str]:
    """What it means that a tag adds these classes, or no longer does."""
    users = [rule for rule in rules[rules.index(tag) + 1 :] if uses(rule, classes)]
    allowing = [rule for rule in users if isinstance(rule, AllowRule)]
    refusing = [rule for rule in users if not isinstance(rule, AllowRule)]
    opens, closes = (allowing, refusing) if adding else (refusing, allowing)
    if opens:
        return LOOSENS, f": {quoted(opens[0].rule_id)} uses {_named(classes)}"
    if adding and _READ_LIKE in classes:
        return LOOSENS, ": `fail_open_read_tools` lets `read_like` calls pass"
    if closes:
        return TIGHTENS, f": {quoted(closes[0].rule_id)} uses {_named(classes)}"
    return NEUTRAL, ""


def _named(classes: list[str]) -> str:
    return ", ".join(quoted(name) for name in classes)
