"""What the entries of all rule kinds have in common."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from subluminal.contracts.decision import Decision, Hint, Terminate
from subluminal.contracts.vocabulary import Action, HintKind, ReasonCode, Scope, Severity
from subluminal.policy.visit import Visit

Guard = Callable[[Visit], bool]


class Subject:
    """What an entry is prepared for: one tool of one server, under one layer's policy."""

    __slots__ = ("layer", "policy_id", "server_name", "tool_name")

    def __init__(self, layer: str, policy_id: str, server_name: str, tool_name: str) -> None:
        self.layer = layer
        self.policy_id = policy_id
        self.server_name = server_name
        self.tool_name = tool_name

    def counter_key(self, rule_id: str, scope: Scope, part: str) -> bytes:
        """16 bytes that name one counter: a reload keeps it, another rule never shares it (shared-runs)."""
        names = {
            Scope.RUN: [],
            Scope.TOOL: [self.tool_name],
            Scope.SERVER_TOOL: [self.server_name, self.tool_name],
        }[scope]
        words = [self.layer, self.policy_id, rule_id, scope.value, part, *names]
        # Lengths in front, so that no two lists of words give the same text.
        text = "".join(f"{len(word)}:{word}" for word in words)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


class Entry(ABC):
    """A rule, prepared for one server and tool. `guard` is what names alone cannot settle."""

    __slots__ = ("classes_above", "guard", "index", "kind", "rule_id", "severity")

    is_access = False

    def __init__(self, index: int, rule: dict[str, Any], guard: Guard | None) -> None:
        self.index = index
        self.kind: str = rule["kind"]
        self.rule_id: str = rule["rule_id"]
        self.severity = Severity(rule["severity"])
        self.guard = guard
        self.classes_above: frozenset[str] = frozenset()
        """risk classes that the tags above this rule give by names alone"""

    @abstractmethod
    def visit(self, visit: Visit) -> Decision | None:
        """Returns a decision if this rule makes one."""

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
        """A refusal by an accumulator, with what its action requires (Pack 1.6)."""
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
    """A number and its noun, as a person would say it."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def span(scope: Scope) -> str:
    """What a counter of this scope counts over, in words."""
    return _SPAN[scope]
