"""Compiles a bundle to a snapshot (Pack 2.6), and reads a snapshot back to a bundle.

Compiling expands defaults, compiles patterns and leaves disabled rules out. What changes no
decision is not in the snapshot, and so not in `policy_hash`: descriptions, the owner, comments, the
order of keys.

A snapshot that comes from outside is read back to a bundle, which is compiled again. If the bytes
are the same, the snapshot is one of ours. A hash alone proves only that nobody changed the snapshot
by accident.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from subluminal.contracts.bundle import (
    AccessEffect,
    ArgsMatch,
    Budget,
    Bundle,
    Defaults,
    KernelRule,
    Match,
    NameMatch,
    NumericRange,
    RateLimit,
    Rule,
    Suggestion,
    TaintRule,
    TargetsMatch,
)
from subluminal.contracts.shape import misfits, struct_of
from subluminal.contracts.vocabulary import RuleKind, Scope
from subluminal.errors import SubluminalError
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.packs import FindPack, questions_of, stated_packs
from subluminal.policy.patterns import NamePatterns, compile_names
from subluminal.policy.snapshot import (
    KERNEL_FORMAT,
    SNAPSHOT_FORMAT,
    TAINT_FORMAT,
    TARGETS_FORMAT,
    TRUST_FORMAT,
    Snapshot,
)
from subluminal.policy.text.places import path_text
from subluminal.policy.texts import TextPatterns, compile_texts

_LEFT_OUT = frozenset({"description", "owner", "created_at", "enabled", "match"})
_IF_GIVEN: dict[type[Struct], frozenset[str]] = {
    ArgsMatch: frozenset({"key_not_equals"}),
    NumericRange: frozenset({"gt", "lt"}),
    AccessEffect: frozenset({"constraints"}),
    Budget: frozenset({"reset_ms"}),
    RateLimit: frozenset({"max_calls", "window_ms"}),
    Defaults: frozenset({"taint"}),
}
"""Fields that are left out if they are not given, so that policies without them keep their hash."""
_MATCHERS_IF_GIVEN = (
    "environment",
    "agent_type",
    "trust_level_min",
    "agent_roles_any",
    "registered",
    "delegation_depth_min",
    "tool_provider",
    "data_labels_any",
    "data_any",
    "text",
    "context",
)
"""The same for matchers. An empty list asks nothing."""
_NOT_GIVEN: tuple[Any, ...] = (None, [], {})


def compile_bundle(bundle: Bundle) -> Snapshot:
    """Compiles a bundle in which `checking` found nothing wrong."""
    expiry = {} if bundle.expires_at is None else {"expires_at": bundle.expires_at}
    snapshot = {
        **expiry,
        "format": 0,
        "policy_id": bundle.policy_id,
        "version": bundle.version,
        "mode": bundle.mode.value,
        "defaults": _expand(bundle.defaults),
        "selectors": _expand(bundle.selectors),
        "rules": [_rule(rule) for rule in bundle.rules if rule.enabled],
    }
    snapshot["format"] = _format(bundle, snapshot)
    return Snapshot(snapshot)


def _format(bundle: Bundle, snapshot: dict[str, Any]) -> int:
    if "expires_at" in snapshot or any(map(_speaks_of_trust, snapshot["rules"])):
        return TRUST_FORMAT
    enabled = [each for each in bundle.rules if each.enabled]
    if any(isinstance(each, KernelRule) for each in enabled):
        return KERNEL_FORMAT
    if bundle.defaults.taint is not None or any(
        isinstance(each, TaintRule) or each.match.taint is not None for each in enabled
    ):
        return TAINT_FORMAT
    if any(each.match.targets is not None for each in enabled):
        return TARGETS_FORMAT
    return SNAPSHOT_FORMAT


def _speaks_of_trust(rule: dict[str, Any]) -> bool:
    match, effect = rule["match"], rule["effect"]
    args = match["args"] or {}
    bounds = args.get("numeric_range", {}).values()
    return (
        rule["kind"] == RuleKind.SEQUENCE
        or any(name in match for name in _MATCHERS_IF_GIVEN)
        or "key_not_equals" in args
        or None in args.get("key_equals", {}).values()
        or any("gt" in each or "lt" in each for each in bounds)
        or "constraints" in effect
        or "reset_ms" in effect.get("budget", {})
        or "max_calls" in effect.get("rate_limit", {})
        or effect.get(rule["kind"], {}).get("scope") in (Scope.AGENT, Scope.AGENT_TOOL)
    )


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "kind": str(rule.__struct_config__.tag),
        "match": _match(rule.match),
        **_expand(rule),
    }


def _match(match: Match) -> dict[str, Any]:
    compiled = {
        "server_name": _names(compile_names(match.server_name)),
        "tool_name": _names(compile_names(match.tool_name)),
        "risk_class": sorted(set(match.risk_class)),
        "args": _expand(match.args),
        "time": _expand(match.time),
    }
    if match.targets is not None:
        # Left out if it is not given, so that policies without it keep their hash.
        compiled["targets"] = _targets(match.targets)
    if match.taint is not None:
        compiled["taint"] = _expand(match.taint)
    for name in _MATCHERS_IF_GIVEN:
        value = getattr(match, name)
        if value not in _NOT_GIVEN:
            compiled[name] = sorted(set(value)) if isinstance(value, list) else _expand(value)
    return compiled


def _targets(targets: TargetsMatch) -> dict[str, Any]:
    path = targets.path
    names = None if path is None else NameMatch(glob=path.glob, regex=path.regex)
    return {
        "program": _optional_names(targets.program),
        "argv": _optional_names(targets.argv),
        "path": None
        if path is None
        else {
            "names": _optional_names(names),
            "inside": _directories(path.inside),
            "outside": _directories(path.outside),
        },
        "access": sorted(set(targets.access)),
        "host": _optional_names(targets.host),
        "opaque": targets.opaque,
    }


def _directories(paths: list[str]) -> list[str]:
    return sorted({path.rstrip("/") or "/" for path in paths})


def _optional_names(match: NameMatch | None) -> dict[str, Any] | None:
    return None if match is None else _names(compile_texts(match))


def _names(patterns: NamePatterns | TextPatterns) -> dict[str, Any]:
    return {name: _listed(value) for name, value in patterns._asdict().items()}


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def _expand(value: Any) -> Any:
    """Returns a struct as plain data, with every default written out."""
    if isinstance(value, Suggestion):
        # A missing `set` differs from `set: null`, which sets the argument to null.
        return {k: v for k, v in _fields(value) if not (k == "set" and value.set is UNSET)}
    if isinstance(value, Struct):
        return dict(_fields(value))
    if isinstance(value, dict):
        return {key: _expand(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item) for item in value]
    return msgspec.to_builtins(value)


def _fields(value: Struct) -> list[tuple[str, Any]]:
    optional = _IF_GIVEN.get(type(value), frozenset())
    return [
        (field.encode_name, _expand(given))
        for field in msgspec.structs.fields(value)
        for given in [getattr(value, field.name)]
        if field.encode_name not in _LEFT_OUT and given is not UNSET
        if field.name not in optional or given not in _NOT_GIVEN
    ]


_HEAD = ("policy_id", "version", "mode", "defaults", "selectors")
_HEAD_IF_GIVEN = ("expires_at",)


def read_snapshot(text: bytes, find_pack: FindPack | None = None) -> tuple[Snapshot, Bundle]:
    """Reads a compiled policy, and a bundle that compiles to it. Raises SubluminalError.

    `find_pack` finds the packs that must be installed; None if the policy is only read.
    """
    try:
        snapshot = Snapshot.from_json(text)
    except (KeyError, ValueError, TypeError):
        raise _damaged("a field is missing or has the wrong type") from None
    bundle = bundle_of(snapshot)
    if find_pack is not None:
        for found in semantic_misfits(bundle, find_pack):
            raise SubluminalError(f"`{path_text(found.path)}`: {found.message}", hint=found.hint)
    return snapshot, bundle


def bundle_of(snapshot: Snapshot) -> Bundle:
    """Returns a bundle that compiles to this snapshot. Some globs come back as regexes."""
    plain = _plain_bundle(snapshot.data)
    for found in misfits(plain, Bundle):
        raise _damaged(f"`{path_text(found.path)}`: {found.message}")
    bundle: Bundle = struct_of(plain, Bundle)
    if any(None in (asked.version, asked.fingerprint) for asked in questions_of(bundle.rules)):
        raise _damaged("a kernel rule does not name version and fingerprint of its pack")
    for found in semantic_misfits(bundle, stated_packs(bundle)):
        raise _damaged(f"`{path_text(found.path)}`: {found.message}")
    if compile_bundle(bundle).policy_hash != snapshot.policy_hash:
        raise _damaged("its bundle compiles to another snapshot")
    return bundle


def _damaged(why: str) -> SubluminalError:
    return SubluminalError(
        f"the snapshot was not made by `sub policy compile`: {why}",
        hint="compile the bundle again with `sub policy compile`",
    )


def _plain_bundle(data: dict[str, Any]) -> dict[str, Any]:
    rules = data.get("rules")
    return {
        **{name: data.get(name) for name in _HEAD},
        **{name: data[name] for name in _HEAD_IF_GIVEN if name in data},
        "rules": [_plain_rule(rule) for rule in rules] if isinstance(rules, list) else rules,
    }


def _plain_rule(rule: Any) -> Any:
    if not isinstance(rule, dict) or not isinstance(rule.get("match"), dict):
        return rule
    match = {name: _plain_part(name, value) for name, value in rule["match"].items()}
    return {**rule, "enabled": True, "match": match}


def _plain_part(name: str, value: Any) -> Any:
    if name in ("server_name", "tool_name"):
        return _plain_names(value)
    if name != "targets" or not isinstance(value, dict):
        return value
    return {field: _plain_target(field, part) for field, part in value.items()}


def _plain_target(field: str, part: Any) -> Any:
    """Reads back one field of `targets`. A field without patterns matches everything."""
    if not isinstance(part, dict):
        return part
    if field == "path":
        names = _plain_names(part.get("names")) or {}
        return {**{name: part.get(name) for name in ("inside", "outside")}, **names}
    return _plain_names(part) or {}


def _plain_names(names: Any) -> Any:
    if not isinstance(names, dict) or names.get("any") is True:
        return None
    return {
        "glob": [
            *_words(names, "exact"),
            *(f"{word}*" for word in _words(names, "prefix")),
            *(f"*{word}" for word in _words(names, "suffix")),
            *("*".join(map(str, parts)) for parts in _lists(names, "parts")),
        ],
        "regex": _words(names, "re2"),
    }


def _lists(names: dict[str, Any], part: str) -> list[list[Any]]:
    return [each for each in _words(names, part) if isinstance(each, list)]


def _words(names: dict[str, Any], part: str) -> list[Any]:
    words = names.get(part)
    return words if isinstance(words, list) else []
