"""What the entries of all rule kinds share: subject, condition, refusals, counter keys."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from subluminal.contracts.decision import Decision, Hint, Terminate
from subluminal.contracts.vocabulary import Action, HintKind, ReasonCode, Scope, Severity
from subluminal.policy.visit import Visit

Condition = Callable[[Visit], bool]
"""Tests what names alone cannot settle: risk classes, times, arguments."""


class Subject:
    """The tool of an entry, and the policy and layer of its rule."""

    __slots__ = ("layer", "policy_id", "server_name", "tool_name")

    def __init__(self, layer: str, policy_id: str, server_name: str, tool_name: str) -> None:
        self.layer = layer
        self.policy_id = policy_id
        self.server_name = server_name
        self.tool_name = tool_name

    def counter_key(self, rule_id: str, scope: Scope, part: str) -> bytes:
        """Returns the 16 bytes that name one counter (shared-runs).

        The name survives a reload of the policy, and no other rule has the same.
        """
        names = {
            Scope.RUN: [],
            Scope.TOOL: [self.tool_name],
            Scope.SERVER_TOOL: [self.server_name, self.tool_name],
        }[scope]
        words = [self.layer, self.policy_id, rule_id, scope.value, part, *names]
        # Each word is preceded by its length, so that no two lists of words give the same text.
        text = "".join(f"{len(word)}:{word}" for word in words)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


class Entry(ABC):
    """A rule prepared for one tool of one server. Without `condition`, every call matches."""

    __slots__ = ("classes_above", "condition", "index", "kind", "rule_id", "severity")

    is_access = False

    def __init__(self, index: int, rule: dict[str, Any], condition: Condition | None) -> None:
        self.index = index
        self.kind: str = rule["kind"]
        self.rule_id: str = rule["rule_id"]
        self.severity = Severity(rule["severity"])
        self.condition = condition
        self.classes_above: frozenset[str] = frozenset()
        """risk classes that tag rules above this rule give to every call of the tool"""

    @abstractmethod
    def visit(self, visit: Visit) -> Decision | None:
        """Returns the decision of this rule; None if it makes none."""

    def refuse(
        self,
        action: str,
        reason_code: ReasonCode,
        summary: str,
        *,
        kind: HintKind,
        hint_text: str | None,
        advice: str,
        terminate_code: str | None = None,
        backoff_ms: int | None = None,
    ) -> Decision:
        """Builds the refusal of a budget, rate limit, breaker or dedupe rule.

        Adds the fields that the action requires (Pack 1.6).
        """
        chosen = Action(action)
        hint = Hint(hint_text=hint_text or summary, retry_advice=advice, hint_kind=kind)
        ends = chosen is Action.TERMINATE_RUN
        return Decision(
            action=chosen,
            rule_id=self.rule_id,
            severity=self.severity,
            reason_code=reason_code,
            summary=summary,
            backoff_ms=backoff_ms if chosen is Action.THROTTLE else None,
            hint=None if ends else hint,
            terminate=Terminate(
                terminate_code=terminate_code or reason_code, terminate_message=summary
            )
            if ends
            else None,
        )


_SPAN = {Scope.RUN: "in this run", Scope.TOOL: "of this tool", Scope.SERVER_TOOL: "of this tool"}


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun in the singular or plural."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def span(scope: Scope) -> str:
    """Returns words for the calls that share a counter of this scope."""
    return _SPAN[scope]
