"""Snapshot back to a bundle that compiles to it: how a snapshot from outside is checked.

A hash proves only that nobody changed a snapshot by accident. What compiles to the very same bytes
is a snapshot of ours; anything else is refused before it can decide or fail to.
"""

from typing import Any

from subluminal.contracts.bundle import Bundle
from subluminal.contracts.shape import misfits, struct_of
from subluminal.errors import SubluminalError
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.snapshot import Snapshot
from subluminal.policy.text.telling import path_text

_HEAD = ("policy_id", "version", "mode", "defaults", "selectors")


def read_snapshot(text: bytes) -> tuple[Snapshot, Bundle]:
    """Reads a compiled policy and the bundle it stands for, or raises SubluminalError."""
    try:
        snapshot = Snapshot.from_json(text)
    except (KeyError, ValueError, TypeError):
        raise _damaged("a part is missing or of the wrong type") from None
    return snapshot, bundle_of(snapshot)


def bundle_of(snapshot: Snapshot) -> Bundle:
    """The bundle that compiles to this snapshot. Globs may come back as the regexes they became."""
    plain = _plain_bundle(snapshot.data)
    for found in misfits(plain, Bundle):
        raise _damaged(f"`{path_text(found.path)}`: {found.message}")
    bundle: Bundle = struct_of(plain, Bundle)
    for found in semantic_misfits(bundle):
        raise _damaged(f"`{path_text(found.path)}`: {found.message}")
    if compile_bundle(bundle).policy_hash != snapshot.policy_hash:
        raise _damaged("no bundle compiles to it")
    return bundle


def _damaged(why: str) -> SubluminalError:
    return SubluminalError(
        f"this snapshot was not made by `sub policy compile`: {why}",
        hint="compile the bundle again",
    )


def _plain_bundle(data: dict[str, Any]) -> dict[str, Any]:
    rules = data.get("rules")
    return {
        **{name: data.get(name) for name in _HEAD},
        "rules": [_plain_rule(rule) for rule in rules] if isinstance(rules, list) else rules,
    }


def _plain_rule(rule: Any) -> Any:
    if not isinstance(rule, dict) or not isinstance(rule.get("match"), dict):
        return rule
    match = {
        name: _plain_names(value) if name in ("server_name", "tool_name") else value
        for name, value in rule["match"].items()
    }
    return {**rule, "enabled": True, "match": match}


def _plain_names(names: Any) -> Any:
    if not isinstance(names, dict) or names.get("any") is True:
        return None
    return {
        "glob": [
            *_words(names, "exact"),
            *(f"{word}*" for word in _words(names, "prefix")),
            *(f"*{word}" for word in _words(names, "suffix")),
        ],
        "regex": _words(names, "re2"),
    }


def _words(names: dict[str, Any], part: str) -> list[Any]:
    words = names.get(part)
    return words if isinstance(words, list) else []
