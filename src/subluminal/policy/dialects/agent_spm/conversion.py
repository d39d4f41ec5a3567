"""Converts a bundle of Agent-SPM, in which `checking` found nothing wrong, to ours.

Rules keep their order and ids; the default becomes a last rule. `written_path` says where a part of
our bundle stands in the original, so that problems are reported in the author's words.
"""

from typing import Any

from msgspec.structs import fields

from subluminal.contracts.bundle import (
    AccessEffect,
    AllowRule,
    AnyRule,
    ArgsMatch,
    Bundle,
    Defaults,
    DenyRule,
    Match,
    NameMatch,
    NumericRange,
    Selectors,
    TextMatch,
)
from subluminal.contracts.shape import Misfit, Path
from subluminal.contracts.vocabulary import Mode, Requirement, Severity
from subluminal.policy.dialects.agent_spm.checking import DEFAULT_RULE_ID
from subluminal.policy.dialects.agent_spm.dates import rfc3339_of
from subluminal.policy.dialects.agent_spm.expressions import translate
from subluminal.policy.dialects.agent_spm.shape import RuleMatch, RuleWhen, SpmBundle, SpmRule

POLICY_ID = "agent-spm"

_REQUIRE = {
    "REQUIRE_APPROVAL": Requirement.APPROVAL,
    "STEP_UP": Requirement.STEP_UP,
    "REQUIRE_TICKET": Requirement.TICKET,
    "REQUIRE_HUMAN": Requirement.HUMAN,
}
_BOUNDS = {"gt": "gt", "gte": "min", "lt": "lt", "lte": "max"}
_GLOB_SPECIAL = frozenset("*?[")


def converted(bundle: SpmBundle) -> Bundle:
    """Returns our bundle."""
    default = bundle.defaults.outcome
    return Bundle(
        policy_id=POLICY_ID,
        version=bundle.version,
        mode=Mode.GUARDRAILS,
        defaults=Defaults(decision_on_error="BLOCK"),
        selectors=Selectors(),
        rules=[
            *(_rule(each) for each in bundle.rules),
            _access(
                DEFAULT_RULE_ID,
                Match(),
                default,
                reason_code=f"DEFAULT_{default}",
                message=f"no rule matches this call; the default is {default}",
            ),
        ],
        created_at=rfc3339_of(bundle.generated_at),
        expires_at=rfc3339_of(bundle.expires_at),
    )


def _rule(rule: SpmRule) -> AnyRule:
    return _access(
        rule.id,
        _match(rule.match, rule.when),
        rule.outcome,
        reason_code=rule.id,
        message=rule.description.strip() or f"rule {rule.id}: {rule.outcome}",
        approver_role=rule.approver_role or None,
        constraints=rule.constraints or {},
    )


def _access(
    rule_id: str,
    match: Match,
    outcome: str,
    *,
    reason_code: str,
    message: str,
    approver_role: str | None = None,
    constraints: dict[str, Any] | None = None,
) -> AnyRule:
    require = _REQUIRE.get(outcome)
    effect = AccessEffect(
        action="ALLOW" if outcome == "ALLOW" else "REJECT_WITH_HINT" if require else "BLOCK",
        reason_code=reason_code,
        message=message,
        require=require,
        approver_role=approver_role if require else None,
        constraints=constraints or {},
    )
    if outcome == "ALLOW":
        return AllowRule(
            rule_id=rule_id, enabled=True, match=match, severity=Severity.INFO, effect=effect
        )
    return DenyRule(
        rule_id=rule_id, enabled=True, match=match, severity=Severity.WARN, effect=effect
    )


def _match(match: RuleMatch, when: RuleWhen) -> Match:
    return Match(
        tool_name=_tool_name(match.tool_name),
        environment=[] if match.environment == "*" else [match.environment],
        agent_type=_listed(match.agent_type),
        trust_level_min=match.trust_level_min,
        agent_roles_any=match.agent_roles_any or [],
        tool_provider=_listed(match.tool_provider),
        data_labels_any=when.data_labels_any,
        text=_text(when),
        args=_args(when.tool_args_match or {}),
    )


def _tool_name(name: str | list[str]) -> NameMatch | None:
    if name == "*":
        return None
    if isinstance(name, list):
        return NameMatch(glob=[_exactly(each) for each in name])
    if name.endswith("*"):
        return NameMatch(glob=[_exactly(name[:-1]) + "*"])
    return NameMatch(glob=[_exactly(name)])


def _exactly(name: str) -> str:
    """Returns a glob that matches only this name."""
    return "".join(f"[{char}]" if char in _GLOB_SPECIAL else char for char in name)


def _listed(names: str | list[str] | None) -> list[str]:
    if not names:
        return []
    return names if isinstance(names, list) else [names]


def _text(when: RuleWhen) -> TextMatch | None:
    regex = translate(when.matches_regex) or None
    if not (when.contains_any or when.not_contains or regex):
        return None
    return TextMatch(any_of=when.contains_any, none_of=when.not_contains, regex=regex)


def _args(wanted: dict[str, Any]) -> ArgsMatch | None:
    equals: dict[str, Any] = {}
    differs: dict[str, Any] = {}
    ranges: dict[str, NumericRange] = {}
    for key, value in wanted.items():
        if not isinstance(value, dict):
            equals[key] = value
            continue
        bounds = {_BOUNDS[name]: value[name] for name in _BOUNDS if name in value}
        if bounds:
            ranges[key] = NumericRange(**bounds)
        if "eq" in value:
            equals[key] = value["eq"]
        if "neq" in value and not isinstance(value["neq"], dict | list):
            differs[key] = value["neq"]
    if not (equals or differs or ranges):
        return None
    return ArgsMatch(key_equals=equals, key_not_equals=differs, numeric_range=ranges)


_SAME = frozenset(field.name for field in fields(RuleMatch))
"""Members of `match` that have the same name in both languages."""
_PLACES: dict[Path, Path] = {
    ("match", "data_labels_any"): ("when", "data_labels_any"),
    ("match", "text", "any_of"): ("when", "contains_any"),
    ("match", "text", "none_of"): ("when", "not_contains"),
    ("match", "text", "regex"): ("when", "matches_regex"),
    ("match", "text"): ("when",),
    ("match", "args"): ("when", "tool_args_match"),
    ("rule_id",): ("id",),
    ("effect", "message"): ("description",),
    ("effect", "approver_role"): ("approver_role",),
    ("effect", "constraints"): ("constraints",),
    ("effect",): ("outcome",),
}
"""Parts of our rules, and where they stand in Agent-SPM's; the first that begins a path counts."""


def written_path(misfit: Misfit, rules: int) -> Misfit:
    """Returns a misfit of the converted bundle, placed in the original with its `rules` rules."""
    path = misfit.path
    if len(path) < 2 or path[0] != "rules":
        return misfit
    if path[1] == rules:
        return misfit._replace(path=("defaults", "outcome"), at_key=False)
    inner = path[2:]
    if inner[:1] == ("match",) and inner[1:2] and inner[1] in _SAME:
        return misfit._replace(path=path[:4], at_key=False)
    for ours, theirs in _PLACES.items():
        if inner[: len(ours)] == ours:
            # What stands below a known part has other names there, but for lists of texts.
            rest = inner[len(ours) :] if theirs[-1] in ("contains_any", "not_contains") else ()
            return misfit._replace(path=("rules", path[1], *theirs, *rest), at_key=False)
    return misfit._replace(path=path[:2], at_key=False)
