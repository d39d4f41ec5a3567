"""Finds rules that were added, removed, renamed, moved or changed. They are paired by rule_id."""

from collections.abc import Iterator
from typing import Any

import msgspec

from subluminal.contracts.bundle import (
    AllowRule,
    AnyRule,
    Bundle,
    DenyRule,
    KernelRule,
    Match,
    TagRule,
    TaintRule,
)
from subluminal.contracts.vocabulary import Severity
from subluminal.policy.covering import covers
from subluminal.policy.diff.agents import gained
from subluminal.policy.diff.changes import LOOSENS, NEUTRAL, TIGHTENS, Change, quoted, worst
from subluminal.policy.diff.effects import effect_changes
from subluminal.policy.diff.order import asks, class_effect, kind_of, order_changes, shields
from subluminal.policy.diff.taint import taint_effect


def rule_changes(old: Bundle, new: Bundle) -> Iterator[Change]:
    """Compares the rules of two bundles."""
    before = {rule.rule_id: rule for rule in old.rules}
    after = {rule.rule_id: rule for rule in new.rules}
    renamed = _renamed(before, after)
    for rule in old.rules:
        if rule.rule_id not in after and rule.rule_id not in renamed.values():
            yield _gone("rule_removed", "removed", rule, old)
    for rule in new.rules:
        if rule.rule_id in renamed:
            yield _renaming(rule, renamed[rule.rule_id])
        elif rule.rule_id not in before:
            yield _come("rule_added", "added", rule, new)
        else:
            yield from _modified(before[rule.rule_id], rule, old, new)
    yield from order_changes(old.rules, new.rules, renamed)


def _renamed(before: dict[str, AnyRule], after: dict[str, AnyRule]) -> dict[str, str]:
    """Maps a new rule_id to the old one, if nothing but the name differs."""
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
    counts = not isinstance(rule, AllowRule | DenyRule | TagRule | TaintRule | KernelRule)
    told = "; its counters start from zero" if counts else ""
    return Change(
        kind="rule_renamed",
        rule_id=rule.rule_id,
        severity=Severity.WARN if counts else NEUTRAL,
        summary=f"renamed from {quoted(old_id)}{told}",
        field="rule_id",
        old=old_id,
        new=rule.rule_id,
    )


def _come(kind: str, verb: str, rule: AnyRule, bundle: Bundle) -> Change:
    severity, why = _effect_of(rule, bundle, adding=True)
    return _presence(kind, verb, rule, severity, why)


def _gone(kind: str, verb: str, rule: AnyRule, bundle: Bundle) -> Change:
    severity, why = _effect_of(rule, bundle, adding=False)
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


def _effect_of(rule: AnyRule, bundle: Bundle, *, adding: bool) -> tuple[Severity, str]:
    """Returns the severity of adding a rule to these rules, or of removing it, and why."""
    if not rule.enabled:
        return NEUTRAL, ", disabled"
    if isinstance(rule, TagRule):
        return class_effect(rule, rule.effect.tag.add_risk_class, bundle, adding=adding)
    if isinstance(rule, TaintRule):
        return taint_effect(rule, bundle, adding=adding)
    refuses = not isinstance(rule, AllowRule) or asks(rule)
    shielded = shields(rule, bundle)
    why = "" if shielded is None else f": it settles access before {quoted(shielded)}"
    if adding and shielded is not None:
        return LOOSENS, why
    if refuses:
        return (TIGHTENS if adding else LOOSENS), ""
    # An allow with no deny below it changes nothing.
    return (NEUTRAL if shielded is None else TIGHTENS), why


def _modified(
    old: AnyRule, new: AnyRule, old_bundle: Bundle, new_bundle: Bundle
) -> Iterator[Change]:
    if not old.enabled and not new.enabled:
        if msgspec.json.encode(old) != msgspec.json.encode(new):
            yield _field(new, "rule", NEUTRAL, "changed, but the rule is disabled", None, None)
        return
    if old.enabled != new.enabled:
        if new.enabled:
            yield _come("rule_enabled", "enabled", new, new_bundle)
        else:
            yield _gone("rule_disabled", "disabled", old, old_bundle)
        return
    for name in ("description", "severity"):
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            yield _field(new, name, NEUTRAL, f"{name} changed", was, now)
    if type(old) is not type(new):
        yield _kind_change(old, new, old_bundle, new_bundle)
        return
    yield from _match_change(old, new, old_bundle, new_bundle)
    if isinstance(old, TagRule) and isinstance(new, TagRule):
        yield from _tag_changes(old, new, old_bundle, new_bundle)
    else:
        yield from effect_changes(old, new)


def _kind_change(old: AnyRule, new: AnyRule, old_bundle: Bundle, new_bundle: Bundle) -> Change:
    parts = [
        _effect_of(old, old_bundle, adding=False)[0],
        _effect_of(new, new_bundle, adding=True)[0],
    ]
    summary = f"kind changed from {quoted(kind_of(old))} to {quoted(kind_of(new))}"
    severity = worst(parts) or NEUTRAL
    return _field(new, "kind", severity, summary, kind_of(old), kind_of(new))


def _match_change(
    old: AnyRule, new: AnyRule, old_bundle: Bundle, new_bundle: Bundle
) -> Iterator[Change]:
    wider, narrower = covers(new.match, old.match), covers(old.match, new.match)
    if wider and narrower:
        return
    told = "widened" if wider else "narrowed" if narrower else "changed"
    parts = []
    if not narrower:
        parts.append(_match_effect(new, new_bundle, adding=True))
    if not wider:
        parts.append(_match_effect(old, old_bundle, adding=False))
    was, now = _plain_match(old.match), _plain_match(new.match)
    names = [name for name in now if was[name] != now[name]]
    was_told = quoted({name: was[name] for name in names})
    now_told = quoted({name: now[name] for name in names})
    summary = f"match {told} from {was_told} to {now_told}{_who_gains(old, new)}"
    yield _field(new, "match", worst(parts) or NEUTRAL, summary, was, now)


def _who_gains(old: AnyRule, new: AnyRule) -> str:
    """Says for whom calls may pass that did not, as far as a match speaks of that."""
    allows = isinstance(new, AllowRule) and not asks(new)
    before, after = (old.match, new.match) if allows else (new.match, old.match)
    told = gained(before, after) if isinstance(new, AllowRule | DenyRule) else ""
    return f"; who gains: {told}" if told else ""


def _match_effect(rule: AnyRule, bundle: Bundle, *, adding: bool) -> Severity:
    """Returns the severity of a rule matching more calls, or fewer."""
    if isinstance(rule, AllowRule) and not asks(rule):
        # An allow is meant to let calls pass. Matching more loosens, even without a deny below.
        return LOOSENS if adding else TIGHTENS
    return _effect_of(rule, bundle, adding=adding)[0]


def _plain_match(match: Match) -> dict[str, Any]:
    fields = msgspec.structs.asdict(match)
    return {name: msgspec.to_builtins(value) for name, value in fields.items()}


def _tag_changes(
    old: TagRule, new: TagRule, old_bundle: Bundle, new_bundle: Bundle
) -> Iterator[Change]:
    was, now = old.effect.tag.add_risk_class, new.effect.tag.add_risk_class
    for name in sorted(set(was) - set(now)):
        severity, why = class_effect(old, [name], old_bundle, adding=False)
        yield _field(new, "effect.tag", severity, f"no longer adds {quoted(name)}{why}", was, now)
    for name in sorted(set(now) - set(was)):
        severity, why = class_effect(new, [name], new_bundle, adding=True)
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
