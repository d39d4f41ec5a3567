"""What the author of a policy may leave out in YAML, and the values that stand for it. Additive.

Contract B as machines exchange it is complete: a bundle in JSON has every required field. A person
who writes YAML may leave out the fields listed here. The compiled policy is complete either way, so
the short and the long form of a policy have the same `policy_hash`.
"""

from copy import deepcopy
from typing import Any

from subluminal.contracts.vocabulary import Action, RuleKind, Scope, Severity

_HINT = Action.REJECT_WITH_HINT.value

BUNDLE: dict[str, Any] = {
    "version": "1",
    "defaults": {"decision_on_error": Action.BLOCK.value},
    "selectors": {},
}
"""Values of missing fields of a bundle."""


def _rule(severity: Severity, effect: dict[str, Any] | None = None) -> dict[str, Any]:
    common = {"enabled": True, "match": {}, "severity": severity.value}
    return common if effect is None else {**common, "effect": effect}


RULES: dict[str, dict[str, Any]] = {
    RuleKind.ALLOW.value: _rule(
        Severity.INFO,
        {
            "action": Action.ALLOW.value,
            "reason_code": "ALLOWED",
            "message": "this call is allowed",
        },
    ),
    RuleKind.DENY.value: _rule(
        Severity.WARN,
        {"action": _HINT, "reason_code": "DENIED", "message": "this call is not allowed"},
    ),
    RuleKind.BUDGET.value: _rule(
        Severity.WARN, {"budget": {"scope": Scope.RUN.value, "on_exceed": _HINT}}
    ),
    RuleKind.RATE_LIMIT.value: _rule(
        Severity.WARN, {"rate_limit": {"scope": Scope.RUN.value, "on_limit": _HINT}}
    ),
    RuleKind.BREAKER.value: _rule(
        Severity.WARN, {"breaker": {"scope": Scope.RUN.value, "on_trip": _HINT}}
    ),
    RuleKind.DEDUPE.value: _rule(
        Severity.WARN, {"dedupe": {"scope": Scope.RUN.value, "on_duplicate": _HINT}}
    ),
    RuleKind.TAG.value: _rule(Severity.INFO),
    RuleKind.TAINT.value: _rule(Severity.INFO),
    RuleKind.KERNEL.value: _rule(Severity.WARN),
    RuleKind.SEQUENCE.value: _rule(Severity.WARN, {"sequence": {"on_match": _HINT}}),
}
"""Values of missing fields of a rule, by its kind."""


def completed(value: Any) -> Any:
    """Returns a bundle with missing fields filled in. What has the wrong type stays as it is."""
    if not isinstance(value, dict):
        return value
    full = _merged(value, BUNDLE)
    if isinstance(full.get("rules"), list):
        full["rules"] = [_completed_rule(rule) for rule in full["rules"]]
    return full


def _completed_rule(rule: Any) -> Any:
    kind = rule.get("kind") if isinstance(rule, dict) else None
    template = RULES.get(kind) if isinstance(kind, str) else None
    return rule if template is None else _merged(rule, template)


def _merged(value: dict[str, Any], template: dict[str, Any]) -> dict[str, Any]:
    full = dict(value)
    for name, default in template.items():
        if name not in full:
            full[name] = deepcopy(default)
        elif isinstance(default, dict) and isinstance(full[name], dict):
            full[name] = _merged(full[name], default)
    return full


def fields_with_default() -> set[str]:
    """Returns the names of all fields that may be left out."""
    return {name for template in (BUNDLE, *RULES.values()) for name in _names(template)}


def _names(template: dict[str, Any]) -> set[str]:
    inner = [_names(default) for default in template.values() if isinstance(default, dict)]
    return set(template).union(*inner)
