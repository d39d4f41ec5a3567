"""tool-call-guard with its JSONL audit. It has one rule for each name: those of one tool are one.

Each call is counted in a list of the last minute, which our rate limit stands for.
"""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from tool_call_guard import Guard, jsonl_audit

from bench.rivals.rules import TOOL, Refusal


def caller(rules: Sequence[Refusal], home: Path) -> Callable[[], object]:
    """Returns a function that makes one call."""
    met = [each for each in rules if each.name.startswith("met")]
    tools: dict[str, Any] = {
        each.glob or each.glob_of_regex: {"action": "deny"} for each in rules if each not in met
    }
    tools[TOOL] = {"validate": lambda args: not _is_met(met, args), "maxCallsPerMinute": 10**9}
    guard = Guard({"defaultAction": "allow", "tools": tools}, on_audit=jsonl_audit(str(home / "a")))
    numbers = count()

    @guard.protect(TOOL)
    def create(args: dict[str, Any]) -> str:
        return "done"

    return lambda: create(
        {"owner": "acme", "title": f"A-{next(numbers)}", "limit": 50, "repo": "widgets"}
    )


def _is_met(rules: Sequence[Refusal], args: dict[str, Any]) -> bool:
    for rule in rules:
        found = args.get(rule.key)
        if rule.at_least is not None:
            if isinstance(found, int) and found >= rule.at_least:
                return True
        elif found == rule.equals:
            return True
    return False
