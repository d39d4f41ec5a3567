"""The frame of every policy that a benchmark compiles."""

from typing import Any


def bundle_of(rules: list[dict[str, Any]], **selectors: list[str]) -> dict[str, Any]:
    """A complete bundle with these rules."""
    return {
        "policy_id": "bench",
        "version": "1",
        "mode": "guardrails",
        "defaults": {"decision_on_error": "BLOCK"},
        "selectors": selectors,
        "rules": rules,
    }
