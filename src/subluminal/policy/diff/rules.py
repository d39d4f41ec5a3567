"""Rules that came, went, moved or changed between two bundles. They are paired by rule_id."""

from collections.abc import Iterator
from typing import Any

import msgspec

from subluminal.contracts.bundle import AllowRule, AnyRule, DenyRule, Match, TagRule
from subluminal.contracts.vocabulary import Severity
from subluminal.policy.covering import covers
from subluminal.policy.diff.changes import LOOSENS, NEUTRAL, TIGHTENS, Change, quoted, worst
from subluminal.policy.diff.effects import effect_changes
from subluminal.policy.diff.order import order_changes
from subluminal.policy.diff.uses import class_effect, kind_of, shields

Rules = list[AnyRule]


def rule_changes(old: Rules, new: Rules) -> Iterator[Change]:
    """Compares two lists of rules."""
    before = {rule.rule_id: rule for rule in old}
    after = {rule.rule_id: rule for rule in new}
    renamed = _renamed(before, after)
    for rule in old:
        if rule.rule_id not in after and rule.rule_id not in renamed.values():
            yield _gone("rule_removed", "removed", rule, old)
    for rule in new:
        if rule.rule_id in renamed:
            yield _renaming(rule, renamed[rule.rule_id])
        elif rule.rule_id not in before:
            yield _come("rule_added", "added", rule, new)
        else:
            yield from _modified(before[rule.rule_id], rule, old, new)
    yield from order_changes(old, new, renamed)


def _renamed(before: dict[str, AnyRule], after: dict[str, AnyRule]) -> dict[str, str]:
    """New id to old id, where all but the name is equal."""
    gone = [rule for rule_id, rule in before.items() if rule_id not in after]
    by_content: dict[bytes, str] = {}
    for rule in gone:
        by_content.setdefault(_content(rule), rule.rule_id)
    found: dict[str, str] = {}
    for rule_id, rule in after.items():
        if rule_id not in before and _content(rule) in by_content:
            found[rule_id] = by_content.pop(_content(rule))
    return found


def _content(rule: AnyRule) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(rule, rule_id="", description=None))


def _renaming(rule: AnyRule, old_id: str) -> Change:
    counts = not isinstance(rule, AllowRule | DenyRule | TagRule)
    told = "; its counters start anew" if counts else ""
    return Change(
        kind="rule_renamed",
        rule_id=rule.rule_id,
        severity=Severity.WARN if counts else NEUTRAL,
        summary=f"renamed from {quoted(old_id)}{told}",
        field="rule_id",
        old=old_id,
        new=rule.rule_id,
    )


def _come(kind: str, verb: str, rule: AnyRule, rules: Rules) -> Change:
    severity, why = _effect_of(rule, rules, adding=True)
    return _presence(kind, verb, rule, severity, why)


def _gone(kind: str, verb: str, rule: AnyRule, rules: Rules) -> Change:
    severity, why = _effect_of(rule, rules, adding=False)
    return _presence(kind, verb, rule, severity, why)


def _presence(kind: str, verb: str, rule: AnyRule, severity: Severity, why: str) -> Change:
    plain = msgspec.to_builtins(rule)
    came = kind in ("rule_added", "rule_enabled")
    return Change(
        kind=kind,
        rule_id=rule.rule_id,
        severity=severity,
        summary=f"{verb} ({kind_of(rule)}){why}",
        old=None if came else plain,
        new=plain if came else None,
    )


def _effect_of(rule: AnyRule, rules: Rules, *, adding: bool) -> tuple[Severity, str]:
    """What it means that a rule comes into, or leaves, these rules."""
    if not rule.enabled:
        return NEUTRAL, ", disabled"
    more, less = (LOOSENS, TIGHTENS) if adding else (TIGHTENS, LOOSENS)
    if isinstance(rule, TagRule):
        return class_effect(rule, rule.effect.tag.add_risk_class, rules, adding=adding)
    if not isinstance(rule, AllowRule):
        return less, ""
    shielded = shields(rule, rules)
    if shielded is not None:
        return more, f": it settles access before {quoted(shielded)}"
    # Without a deny below, an allow changes nothing, unless it waits for a person.
    return (NEUTRAL, "") if rule.effect.require is None else (less, "")


def _modified(old: AnyRule, new: AnyRule, old_rules: Rules, new_rules: Rules) -> Iterator[Change]:
    if not old.enabled and not new.enabled:
        if msgspec.json.encode(old) != msgspec.json.encode(new):
            yield _field(new, "rule", NEUTRAL, "changed while it is disabled", None, None)
        return
    if old.enabled != new.enabled:
        if new.enabled:
            yield _come("rule_enabled", "enabled", new, new_rules)
        else:
            yield _gone("rule_disabled", "disabled", old, old_rules)
        return
    for name in ("description", "severity"):
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            yield _field(new, name, NEUTRAL, f"{name} changed", was, now)
    if type(old) is not type(new):
        yield _kind_change(old, new, old_rules, new_rules)
        return
    yield from _match_change(old, new)
    if isinstance(old, TagRule) and isinstance(new, TagRule):
        yield from _tag_changes(old, new, old_rules, new_rules)
    else:
        yield from effect_changes(old, new)


def _kind_change(old: AnyRule, new: AnyRule, old_rules: Rules, new_rules: Rules) -> Change:
    parts = [
        _effect_of(old, old_rules, adding=False)[0],
        _effect_of(new, new_rules, adding=True)[0],
    ]
    summary = f"kind changed from {quoted(kind_of(old))} to {quoted(kind_of(new))}"
    severity = worst(parts) or NEUTRAL
    return _field(new, "kind", severity, summary, kind_of(old), kind_of(new))


def _match_change(old: AnyRule, new: AnyRule) -> Iterator[Change]:
    wider, narrower = covers(new.match, old.match), covers(old.match, new.match)
    if wider and narrower:
        return
    allows = isinstance(new, AllowRule) and new.effect.require is None
    if wider:
        told, severity = "widened", LOOSENS if allows else TIGHTENS
    elif narrower:
        told, severity = "narrowed", TIGHTENS if allows else LOOSENS
    else:
        # What it no longer matches, or newly allows, cannot be ruled out.
        told, severity = "changed", LOOSENS
    if isinstance(new, TagRule) and severity is TIGHTENS:
        told += "; rules that use its classes match more"
    was, now = _plain_match(old.match), _plain_match(new.match)
    parts = [name for name in now if was[name] != now[name]]
    was_told = quoted({name: was[name] for name in parts})
    now_told = quoted({name: now[name] for name in parts})
    summary = f"match {told} from {was_told} to {now_told}"
    yield _field(new, "match", severity, summary, was, now)


def _plain_match(match: Match) -> dict[str, Any]:
    fields = msgspec.structs.asdict(match)
    return {name: msgspec.to_builtins(value) for name, value in fields.items()}


def _tag_changes(
    old: TagRule, new: TagRule, old_rules: Rules, new_rules: Rules
) -> Iterator[Change]:
    was, now = old.effect.tag.add_risk_class, new.effect.tag.add_risk_class
    for name in sorted(set(was) - set(now)):
        severity, why = class_effect(old, [name], old_rules, adding=False)
        yield _field(new, "effect.tag", severity, f"no longer adds {quoted(name)}{why}", was, now)
    for name in sorted(set(now) - set(was)):
        severity, why = class_effect(new, [name], new_rules, adding=True)
        yield _field(new, "effect.tag", severity, f"also adds {quoted(name)}{why}", was, now)


def _field(
    rule: AnyRule, field: str, severity: Severity, summary: str, old: Any, new: Any
) -> Change:
    return Change(
        kind="rule_modified",
        rule_id=rule.rule_id,
        severity=severity,
        summary=summary,
        field=field,
        old=old,
        new=new,
    )
