"""Rules that changed places: it matters between allow and deny, and between a tag and its users."""

from bisect import bisect_left
from collections.abc import Iterator

from subluminal.contracts.bundle import AllowRule, AnyRule, DenyRule, TagRule
from subluminal.contracts.vocabulary import Severity
from subluminal.policy.diff.changes import LOOSENS, NEUTRAL, TIGHTENS, Change, quoted
from subluminal.policy.diff.uses import asks, may_shield, uses


def order_changes(
    old: list[AnyRule], new: list[AnyRule], renamed: dict[str, str]
) -> Iterator[Change]:
    """Finds rules that stand elsewhere relative to the others, disabled ones aside."""
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
        # Of two rules that changed places, one is told, in words that name the other.
        if place not in steady and rule.rule_id not in told | partners:
            yield _moved(rule, NEUTRAL, "moved to another place")


def _flips(kept: list[tuple[int, AnyRule]]) -> list[tuple[Change, str]]:
    """Rules whose order was turned round and matters, each with the other; loosening first."""
    bound = [entry for entry in kept if _depends_on_order(entry[1])]
    found: list[tuple[Change, str]] = []
    for index, (upper_place, upper) in enumerate(bound):
        for lower_place, lower in bound[index + 1 :]:
            if lower_place < upper_place:
                found += _meaning(upper, lower)
    return sorted(found, key=lambda flip: flip[0].severity is not LOOSENS)


def _depends_on_order(rule: AnyRule) -> bool:
    return isinstance(rule, AllowRule | DenyRule | TagRule) or bool(rule.match.risk_class)


def _meaning(upper: AnyRule, lower: AnyRule) -> list[tuple[Change, str]]:
    """What it means that `upper` now stands above `lower`."""
    upper_name, lower_name = quoted(upper.rule_id), quoted(lower.rule_id)
    if may_shield(upper, lower):
        change = _moved(upper, LOOSENS, f"moved above the deny {lower_name}")
    elif may_shield(lower, upper):
        change = _moved(upper, TIGHTENS, f"moved above the allow {lower_name}")
    elif isinstance(upper, TagRule) and uses(lower, upper.effect.tag.add_risk_class):
        # What a tag gives on to another tag may end in an allow.
        opens = isinstance(lower, AllowRule | TagRule) or asks(lower)
        severity = LOOSENS if opens else TIGHTENS
        change = _moved(upper, severity, f"moved above {lower_name}, which uses it")
    elif isinstance(lower, TagRule) and uses(upper, lower.effect.tag.add_risk_class):
        only_opens = isinstance(upper, AllowRule) and not asks(upper)
        severity = TIGHTENS if only_opens else LOOSENS
        change = _moved(lower, severity, f"moved below {upper_name}, which uses it")
    else:
        return []
    return [(change, lower.rule_id if change.rule_id == upper.rule_id else upper.rule_id)]


def _moved(rule: AnyRule, severity: Severity, summary: str) -> Change:
    return Change(kind="rule_moved", rule_id=rule.rule_id, severity=severity, summary=summary)


def _longest_rising(places: list[int]) -> set[int]:
    """The largest set of places that kept their order: the others are what moved."""
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
