"""Bundles of Agent-SPM for tests: valid ones, which each test changes in one place."""

import json
from copy import deepcopy
from typing import Any

from subluminal.errors import InvalidInput, Problem
from subluminal.policy.loading import LoadedBundle, parse_bundle
from subluminal.policy.terms import ANY, Terms

START, END = "2026-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z"


def spm_rule(**changes: Any) -> dict[str, Any]:
    """A rule that denies the tool `bad_tool`; `match` and `when` are merged, others replaced."""
    match = {"tool_name": "bad_tool", "environment": "*", **changes.pop("match", {})}
    rule = {"id": "DENY_TOOL", "description": "Block bad tool", "match": match, "outcome": "DENY"}
    return {**rule, **changes}


def spm(*rules: dict[str, Any], default: str = "ALLOW", **changes: Any) -> dict[str, Any]:
    """A bundle with these rules."""
    head = {"version": "0.1.0", "generated_at": START, "expires_at": END}
    return deepcopy({**head, "rules": list(rules), "defaults": {"outcome": default}, **changes})


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same mapping without these members."""
    return {name: item for name, item in value.items() if name not in names}


def load(value: Any, terms: Terms = ANY) -> LoadedBundle:
    """Loads a bundle from its JSON text, with a member on each line."""
    return parse_bundle(json.dumps(value, indent=1).encode(), "b.json", terms=terms)


def problems_of(value: Any, terms: Terms = ANY) -> list[Problem]:
    """The problems with a bundle; an empty list if it is loaded."""
    try:
        load(value, terms)
    except InvalidInput as error:
        return list(error.problems)
    return []
