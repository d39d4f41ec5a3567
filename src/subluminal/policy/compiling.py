"""Bundle to snapshot: defaults expanded, patterns compiled, disabled rules left out (Pack 2.6).

What does not change a decision is not in the snapshot and so not in `policy_hash`: descriptions,
the owner, comments, the order of keys.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from subluminal.contracts.bundle import Bundle, Match, Rule, Suggestion
from subluminal.policy.patterns import NamePatterns, compile_names
from subluminal.policy.snapshot import SNAPSHOT_FORMAT, Snapshot

_LEFT_OUT = frozenset({"description", "owner", "created_at", "enabled", "match"})


def compile_bundle(bundle: Bundle) -> Snapshot:
    """Compiles a bundle in which `checking` has found nothing wrong."""
    return Snapshot(
        {
            "format": SNAPSHOT_FORMAT,
            "policy_id": bundle.policy_id,
            "version": bundle.version,
            "mode": bundle.mode.value,
            "defaults": _expand(bundle.defaults),
            "selectors": _expand(bundle.selectors),
            "rules": [_rule(rule) for rule in bundle.rules if rule.enabled],
        }
    )


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "kind": str(rule.__struct_config__.tag),
        "match": _match(rule.match),
        **_expand(rule),
    }


def _match(match: Match) -> dict[str, Any]:
    return {
        "server_name": _names(compile_names(match.server_name)),
        "tool_name": _names(compile_names(match.tool_name)),
        "risk_class": sorted(set(match.risk_class)),
        "args": _expand(match.args),
        "time": _expand(match.time),
    }


def _names(patterns: NamePatterns) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in patterns._asdict().items()
    }


def _expand(value: Any) -> Any:
    """Plain data of a struct with every default written out."""
    if isinstance(value, Suggestion):
        # Absent and null differ here: `set: null` sets null.
        return {k: v for k, v in _fields(value) if not (k == "set" and value.set is UNSET)}
    if isinstance(value, Struct):
        return dict(_fields(value))
    if isinstance(value, dict):
        return {key: _expand(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item) for item in value]
    return msgspec.to_builtins(value)


def _fields(value: Struct) -> list[tuple[str, Any]]:
    return [
        (field.encode_name, _expand(getattr(value, field.name)))
        for field in msgspec.structs.fields(value)
        if field.encode_name not in _LEFT_OUT and getattr(value, field.name) is not UNSET
    ]
