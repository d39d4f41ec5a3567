"""Finds what the order of rules means, and which moves change it.

Two relations depend on order. An allow shields calls from a deny below it. A tag gives risk classes
to the rules below it, its users. First the relations of a rule to its neighbours, then the moves.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    Bundle,
    DenyRule,
    KernelRule,
    TagRule,
    TaintRule,
)
from subluminal.contracts.vocabulary import Severity
from subluminal.policy.covering import disjoint
from subluminal.policy.diff.changes import LOOSENS, NEUTRAL, TIGHTENS, Change, quoted
from subluminal.policy.diff.taint import exempts

_READ_LIKE = "read_like"
"""The risk class that `fail_open_read_tools` lets pass."""


def kind_of(rule: AnyRule) -> str:
    """Returns the kind of a rule, as its author writes it."""
    return str(rule.__struct_config__.tag)


def asks(rule: AnyRule) -> bool:
    """Whether a rule refuses calls until a person has granted them (no-call-waits)."""
    return isinstance(rule, AllowRule | DenyRule) and rule.effect.require is not None


def may_shield(upper: AnyRule, lower: AnyRule) -> bool:
    """Whether a rule may let calls pass that an allow, deny or kernel rule below it would refuse.

    An allow settles access, and so does a rule with `require` once a person has granted the call.
    """
    return (
        (isinstance(upper, AllowRule) or asks(upper))
        and (isinstance(lower, DenyRule | KernelRule) or asks(lower))
        and not disjoint(upper.match, lower.match)
    )


def shields(rule: AnyRule, bundle: Bundle) -> str | None:
    """Returns the first enabled rule below from which a rule may shield calls."""
    below = bundle.rules[bundle.rules.index(rule) + 1 :]
    return next((each.rule_id for each in below if each.enabled and may_shield(rule, each)), None)


def uses(rule: AnyRule, classes: Iterable[str]) -> bool:
    """Whether an enabled rule matches one of these risk classes."""
    return rule.enabled and not set(classes).isdisjoint(rule.match.risk_class)


def class_effect(
    tag: TagRule, classes: list[str], bundle: Bundle, *, adding: bool
) -> tuple[Severity, str]:
    """Returns the severity of a tag adding these classes, or no longer adding them, and why."""
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
    """Whether a rule lets calls pass. One with `require` does if a rule below would refuse them."""
    if asks(rule):
        return shields(rule, bundle) is not None
    return isinstance(rule, AllowRule)


def _users(rules: list[AnyRule], classes: list[str]) -> list[AnyRule]:
    """Returns the rules that match these classes, directly or through another tag."""
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


def order_changes(
    old: list[AnyRule], new: list[AnyRule], renamed: dict[str, str]
) -> Iterator[Change]:
    """Finds rules whose position among the others has changed. Disabled rules are ignored."""
    position = {rule.rule_id: index for index, rule in enumerate(old) if rule.enabled}
    kept = [
        (position[renamed.get(rule.rule_id, rule.rule_id)], rule)
        for rule in new
        if rule.enabled and renamed.get(rule.rule_id, rule.rule_id) in position
    ]
    places = [place for place, _ in kept]
    if places == sorted(places):
        return
    told: set[str] = set()
    partners: set[str] = set()
    for change, partner in _flips(kept):
        if change.rule_id not in told:
            yield change
        told.add(str(change.rule_id))
        partners.add(partner)
    steady = _longest_rising(places)
    for place, rule in kept:
        # If two rules swapped places, only one is reported; its summary names the other.
        if place not in steady and rule.rule_id not in told | partners:
            yield _moved(rule, NEUTRAL, "moved to another position")


def _flips(kept: list[tuple[int, AnyRule]]) -> list[tuple[Change, str]]:
    """Returns the pairs of rules whose order was reversed and matters; those that loosen first."""
    bound = [entry for entry in kept if _depends_on_order(entry[1])]
    found: list[tuple[Change, str]] = []
    for index, (upper_place, upper) in enumerate(bound):
        for lower_place, lower in bound[index + 1 :]:
            if lower_place < upper_place:
                found += _meaning(upper, lower)
    return sorted(found, key=lambda flip: flip[0].severity is not LOOSENS)


def _depends_on_order(rule: AnyRule) -> bool:
    ordered = AllowRule | DenyRule | TagRule | TaintRule | KernelRule
    return isinstance(rule, ordered) or bool(rule.match.risk_class)


def _meaning(upper: AnyRule, lower: AnyRule) -> list[tuple[Change, str]]:
    """Returns what it changes that `upper` is now above `lower`."""
    upper_name, lower_name = quoted(upper.rule_id), quoted(lower.rule_id)
    if may_shield(upper, lower):
        change = _moved(upper, LOOSENS, f"moved above the {_refusing(lower)} {lower_name}")
    elif may_shield(lower, upper):
        change = _moved(upper, TIGHTENS, f"moved above the allow {lower_name}")
    elif isinstance(upper, TagRule) and uses(lower, upper.effect.tag.add_risk_class):
        # A class may pass through another tag to an allow.
        opens = isinstance(lower, AllowRule | TagRule) or asks(lower)
        severity = LOOSENS if opens else TIGHTENS
        change = _moved(upper, severity, f"moved above {lower_name}, which uses its risk class")
    elif isinstance(lower, TagRule) and uses(upper, lower.effect.tag.add_risk_class):
        only_opens = isinstance(upper, AllowRule) and not asks(upper)
        severity = TIGHTENS if only_opens else LOOSENS
        change = _moved(lower, severity, f"moved below {upper_name}, which uses its risk class")
    elif exempts(upper, lower):
        change = _moved(upper, LOOSENS, f"moved above {lower_name}, which lowers further")
    elif exempts(lower, upper):
        change = _moved(upper, TIGHTENS, f"moved above {lower_name}, which lowers less")
    else:
        return []
    return [(change, lower.rule_id if change.rule_id == upper.rule_id else upper.rule_id)]


def _refusing(rule: AnyRule) -> str:
    return "kernel rule" if isinstance(rule, KernelRule) else "deny"


def _moved(rule: AnyRule, severity: Severity, summary: str) -> Change:
    return Change(kind="rule_moved", rule_id=rule.rule_id, severity=severity, summary=summary)


def _longest_rising(places: list[int]) -> set[int]:
    """Returns the largest set of positions that kept their order. All others have moved."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = [-1] * len(places)
    for index, place in enumerate(places):
        slot = bisect_left(tails, place)
        previous[index] = ends[slot - 1] if slot else -1
        tails[slot : slot + 1] = [place]
        ends[slot : slot + 1] = [index]
    kept: set[int] = set()
    index = ends[-1]
    while index >= 0:
        kept.add(places[index])
        index = previous[index]
    return kept
