"""Short ways to write bundles in tests."""

from copy import deepcopy
from typing import Any

import msgspec

from subluminal.contracts.bundle import Bundle

EFFECTS: dict[str, dict[str, Any]] = {
    "allow": {"action": "ALLOW", "reason_code": "OK", "message": "fine"},
    "deny": {"action": "BLOCK", "reason_code": "NO", "message": "not this"},
    "budget": {"scope": "run", "limit_calls": 10, "on_exceed": "BLOCK"},
    "rate_limit": {
        "scope": "run",
        "capacity": 10,
        "refill_tokens": 10,
        "refill_period_ms": 1000,
        "on_limit": "THROTTLE",
        "backoff_ms": 100,
    },
    "breaker": {
        "scope": "run",
        "repeat_threshold": 5,
        "repeat_window_ms": 1000,
        "on_trip": "BLOCK",
    },
    "dedupe": {"scope": "run", "window_ms": 1000, "on_duplicate": "BLOCK"},
    "tag": {"add_risk_class": ["write_like"]},
    "pin": {"on_change": "BLOCK", "on_new": "ALLOW"},
    "taint": {"lower_to": "UNTRUSTED"},
    "kernel": {
        "pack": "desk",
        "intent": "desk.pay",
        "version": "1.0.0",
        "fingerprint": "d" * 64,
    },
    "sequence": {"pattern": ["read", "send"], "on_match": "BLOCK"},
}
ACCUMULATORS = ("budget", "rate_limit", "breaker", "dedupe")


def rule(kind: str, rule_id: str | None = None, **changes: Any) -> dict[str, Any]:
    """A rule as plain data; `changes` go into its effect, or are `match`, `enabled`, …"""
    fields: dict[str, Any] = {
        name: changes.pop(name)
        for name in ("match", "enabled", "severity", "description")
        if name in changes
    }
    full = {**deepcopy(EFFECTS[kind]), **changes}
    effect = {key: value for key, value in full.items() if value is not ...}
    return {
        "rule_id": rule_id or kind,
        "kind": kind,
        "enabled": True,
        "match": {},
        "severity": "warn",
        "effect": effect if kind in ("allow", "deny") else {kind: effect},
        **fields,
    }


def tools(*globs: str) -> dict[str, Any]:
    """A match of tools by glob."""
    return {"tool_name": {"glob": list(globs)}}


def plain(*rules: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A bundle as plain data."""
    return {
        "policy_id": "p",
        "version": "1",
        "mode": "guardrails",
        "defaults": {"decision_on_error": "BLOCK"},
        "selectors": {},
        "rules": list(rules),
        **changes,
    }


def bundle(*rules: dict[str, Any], **changes: Any) -> Bundle:
    """A bundle whose shape is right; what it says may still be impossible."""
    return msgspec.convert(plain(*rules, **changes), Bundle)


def text(*rules: dict[str, Any], **changes: Any) -> bytes:
    """A bundle as the bytes of a file."""
    return msgspec.json.encode(plain(*rules, **changes))
