"""sudoagent with its chained ledger and its audit log. Its policies are functions in Python."""

import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from itertools import count
from pathlib import Path
from typing import Any

from sudoagent import Context, Decision, PolicyResult, SudoEngine
from sudoagent.ledger.jsonl import JSONLLedger
from sudoagent.loggers.jsonl import JsonlAuditLogger

from bench.rivals.rules import TOOL, Refusal


class _Rules:
    """Fifty rules as somebody would write them by hand."""

    def __init__(self, rules: Sequence[Refusal]) -> None:
        self._rules = [(re.compile(each.regex or translate(each.glob)), each) for each in rules]

    def evaluate(self, call: Context) -> PolicyResult:
        for pattern, rule in self._rules:
            if pattern.match(TOOL) and (not rule.key or _is_met(rule, call.kwargs)):
                return PolicyResult(decision=Decision.DENY, reason=rule.name)
        return PolicyResult(decision=Decision.ALLOW, reason="no rule refused this call")


def _is_met(rule: Refusal, args: dict[str, Any]) -> bool:
    found = args.get(rule.key)
    if rule.at_least is not None:
        return isinstance(found, int) and found >= rule.at_least
    return found == rule.equals


def caller(rules: Sequence[Refusal], home: Path) -> Callable[[], object]:
    """Returns a function that makes one call."""
    engine = SudoEngine(
        policy=_Rules(rules),
        logger=JsonlAuditLogger(home / "sudo_audit.jsonl"),
        ledger=JSONLLedger(home / "sudo_ledger.jsonl"),
    )
    numbers = count()

    @engine.guard()
    def create(*, owner: str, title: str, limit: int, repo: str = "widgets") -> str:
        return "done"

    return lambda: create(owner="acme", title=f"A-{next(numbers)}", limit=50)
