"""What a rule means to the rules around it: whom an allow shields, who uses a tag's classes."""

from collections.abc import Iterable

from subluminal.contracts.bundle import AllowRule, AnyRule, Bundle, DenyRule, TagRule
from subluminal.contracts.vocabulary import Severity
from subluminal.policy.covering import disjoint
from subluminal.policy.diff.changes import LOOSENS, NEUTRAL, TIGHTENS, quoted

_READ_LIKE = "read_like"
"""The class that `fail_open_read_tools` lets pass."""


def kind_of(rule: AnyRule) -> str:
    """The rule's kind, as it is written."""
    return str(rule.__struct_config__.tag)


def asks(rule: AnyRule) -> bool:
    """Whether a rule refuses a call until a person grants it (no-call-waits)."""
    return isinstance(rule, AllowRule | DenyRule) and rule.effect.require is not None


def may_shield(upper: AnyRule, lower: AnyRule) -> bool:
    """Whether a rule may let something pass that an access rule below it refuses.

    An allow settles access; so does a rule that asks, once it is granted.
    """
    return (
        (isinstance(upper, AllowRule) or asks(upper))
        and (isinstance(lower, DenyRule) or asks(lower))
        and not disjoint(upper.match, lower.match)
    )


def shields(rule: AnyRule, bundle: Bundle) -> str | None:
    """The first enabled rule below that refuses, and that a rule may shield from."""
    below = bundle.rules[bundle.rules.index(rule) + 1 :]
    return next((each.rule_id for each in below if each.enabled and may_shield(rule, each)), None)


def uses(rule: AnyRule, classes: Iterable[str]) -> bool:
    """Whether a rule's match asks for one of these risk classes."""
    return rule.enabled and not set(classes).isdisjoint(rule.match.risk_class)


def class_effect(
    tag: TagRule, classes: list[str], bundle: Bundle, *, adding: bool
) -> tuple[Severity, str]:
    """What it means that a tag adds these classes, or adds them no longer."""
    users = _users(bundle.rules[bundle.rules.index(tag) + 1 :], classes)
    allowing = [rule for rule in users if _opens(rule, bundle)]
    refusing = [rule for rule in users if not isinstance(rule, AllowRule) or asks(rule)]
    opens, closes = (allowing, refusing) if adding else (refusing, allowing)
    if opens:
        return LOOSENS, f": {quoted(opens[0].rule_id)} uses {_named(classes)}"
    if adding and _READ_LIKE in classes and bundle.defaults.fail_open_read_tools:
        return LOOSENS, ": `fail_open_read_tools` lets `read_like` calls pass"
    if closes:
        return TIGHTENS, f": {quoted(closes[0].rule_id)} uses {_named(classes)}"
    return NEUTRAL, ""


def _opens(rule: AnyRule, bundle: Bundle) -> bool:
    """Whether calls pass because of a rule. One that asks may, if another below would refuse."""
    if asks(rule):
        return shields(rule, bundle) is not None
    return isinstance(rule, AllowRule)


def _users(rules: list[AnyRule], classes: list[str]) -> list[AnyRule]:
    """Who asks for these classes, directly or through a tag that asks for them."""
    live = set(classes)
    found: list[AnyRule] = []
    for rule in rules:
        if not uses(rule, live):
            continue
        if isinstance(rule, TagRule):
            live.update(rule.effect.tag.add_risk_class)
        else:
            found.append(rule)
    return found


def _named(classes: list[str]) -> str:
    return ", ".join(quoted(name) for name in classes)
