"""Policies as tests write them: a few rules, the rest by default."""

from typing import Any

import msgspec

from subluminal.contracts.bundle import Bundle
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot


def bundle(*rules: dict[str, Any], mode: str = "guardrails", **defaults: Any) -> dict[str, Any]:
    """A bundle as data; write it as JSON and it is a policy file."""
    return {
        "policy_id": "test",
        "version": "1",
        "mode": mode,
        "defaults": {"decision_on_error": "BLOCK", **defaults},
        "selectors": {},
        "rules": list(rules),
    }


def snapshot(*rules: dict[str, Any], **options: Any) -> Snapshot:
    """The same, compiled."""
    return compile_bundle(msgspec.convert(bundle(*rules, **options), Bundle))


def rule(rule_id: str, kind: str, effect: dict[str, Any], **match: Any) -> dict[str, Any]:
    return {
        "rule_id": rule_id,
        "kind": kind,
        "enabled": True,
        "match": match,
        "effect": effect,
        "severity": "warn",
    }


def deny(*tools: str, rule_id: str = "no-rm", message: str = "do not remove") -> dict[str, Any]:
    effect = {"action": "BLOCK", "reason_code": "DENYLIST_MATCH", "message": message}
    return rule(rule_id, "deny", effect, tool_name={"glob": list(tools)})


def budget(limit: int, on_exceed: str = "BLOCK", **more: Any) -> dict[str, Any]:
    effect = {"budget": {"scope": "run", "limit_calls": limit, "on_exceed": on_exceed, **more}}
    return rule("budget", "budget", effect)


def throttle(capacity: int, backoff_ms: int) -> dict[str, Any]:
    effect = {
        "rate_limit": {
            "scope": "run",
            "capacity": capacity,
            "refill_tokens": 1,
            "refill_period_ms": 3_600_000,
            "on_limit": "THROTTLE",
            "backoff_ms": backoff_ms,
        }
    }
    return rule("rate", "rate_limit", effect)
