"""Finds what changed between two bundles, and whether a change loosens (spec 001 section 9.4).

Compares meaning, not text: comments, the order of keys, written-out defaults and the order inside a
list of alternatives do not matter. This module compares all but the rules, which `rules` compares.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from subluminal.contracts.bundle import Bundle, Selectors, WorkloadSelector
from subluminal.contracts.vocabulary import SEVERITY_RANK, Action, Mode, Severity
from subluminal.policy.diff.changes import LOOSENS, NEUTRAL, TIGHTENS, Change, quoted
from subluminal.policy.diff.rules import rule_changes
from subluminal.policy.diff.taint import level_rank
from subluminal.timestamps import parse_rfc3339


def diff(old: Bundle, new: Bundle) -> list[Change]:
    """Returns every change of meaning, the most severe first."""
    changes = [*_header(old, new), *_defaults(old, new), *_selectors(old, new)]
    changes += rule_changes(old, new)
    return sorted(changes, key=lambda change: -SEVERITY_RANK[change.severity])


def _header(old: Bundle, new: Bundle) -> Iterator[Change]:
    names = ("policy_id", "version", "mode", "description", "owner", "created_at", "expires_at")
    for name in names:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield Change(
                kind=name,
                severity=_header_severity(name, before, after),
                summary=f"{name} changed from {quoted(before)} to {quoted(after)}",
                field=name,
                old=before,
                new=after,
            )


def _header_severity(name: str, before: Any, after: Any) -> Severity:
    if name == "expires_at":
        return LOOSENS if _end_of(after) > _end_of(before) else TIGHTENS
    if name == "mode":
        return LOOSENS if after is Mode.OBSERVE else TIGHTENS
    # Counters belong to a policy_id: under a new one they start from zero.
    return Severity.WARN if name == "policy_id" else NEUTRAL


def _end_of(expires_at: str | None) -> float:
    return float("inf") if expires_at is None else parse_rfc3339(expires_at)


def _defaults(old: Bundle, new: Bundle) -> Iterator[Change]:
    before, after = old.defaults, new.defaults
    if before.decision_on_error != after.decision_on_error:
        opens = after.decision_on_error == Action.ALLOW
        yield _default_change("decision_on_error", opens, before, after)
    if before.fail_open_read_tools != after.fail_open_read_tools:
        yield _default_change("fail_open_read_tools", after.fail_open_read_tools, before, after)
    was, now = level_rank(before.taint), level_rank(after.taint)
    if was != now:
        yield _default_change("taint", now < was, before, after)


def _default_change(name: str, opens: bool, before: Any, after: Any) -> Change:
    was, now = getattr(before, name), getattr(after, name)
    return Change(
        kind="defaults",
        severity=LOOSENS if opens else TIGHTENS,
        summary=f"{name} changed from {quoted(was)} to {quoted(now)}",
        field=f"defaults.{name}",
        old=was,
        new=now,
    )


def _selectors(old: Bundle, new: Bundle) -> Iterator[Change]:
    was, now = _selector_fields(old.selectors), _selector_fields(new.selectors)
    for field in was:
        before, after = was[field], now[field]
        if before != after:
            yield _selector_change(field, before, after)


def _selector_fields(selectors: Selectors) -> dict[str, Any]:
    workload = selectors.workload or WorkloadSelector()
    fields: dict[str, Any] = {
        "selectors.env": sorted({env.value for env in selectors.env}),
        "selectors.agent_id": sorted(set(selectors.agent_id)),
        "selectors.client": sorted({client.value for client in selectors.client}),
    }
    for name, value in msgspec.structs.asdict(workload).items():
        written = value if isinstance(value, dict) else sorted(set(value))
        fields[f"selectors.workload.{name}"] = written
    return fields


def _selector_change(field: str, before: Any, after: Any) -> Change:
    """A change of selectors loosens if the policy no longer applies to some runs."""
    drops = _drops(before, after)
    told = "no longer applies to some runs" if drops else "applies to more runs"
    return Change(
        kind="selectors",
        severity=LOOSENS if drops else TIGHTENS,
        summary=f"{field} changed from {_all_or(before)} to {_all_or(after)}: the policy {told}",
        field=field,
        old=before,
        new=after,
    )


def _drops(before: Any, after: Any) -> bool:
    if isinstance(after, dict):
        # All labels must match, so each additional label narrows.
        return any(before.get(key) != value for key, value in after.items())
    return bool(after) and (not before or not set(before) <= set(after))


def _all_or(value: Any) -> str:
    return quoted(value) if value else "all"
