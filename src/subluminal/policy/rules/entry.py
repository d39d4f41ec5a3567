"""What the entries of all rule kinds share: subject, condition, counter keys."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import Scope, Severity
from subluminal.policy.visit import Visit

Condition = Callable[[Visit], bool]
"""Tests what names alone cannot settle: risk classes, times, arguments."""


class Subject:
    """The tool of an entry, and the policy and layer of its rule."""

    __slots__ = ("agent_id", "layer", "policy_id", "server_name", "tool_name")

    def __init__(
        self, layer: str, policy_id: str, server_name: str, tool_name: str, agent_id: str = ""
    ) -> None:
        self.layer = layer
        self.policy_id = policy_id
        self.server_name = server_name
        self.tool_name = tool_name
        self.agent_id = agent_id
        """agent whose calls they are"""

    def counter_key(self, rule_id: str, scope: Scope, part: str) -> bytes:
        """Returns the 16 bytes that name one counter (shared-runs).

        The name survives a reload of the policy, and no other rule has the same.
        """
        names = {
            Scope.RUN: [],
            Scope.TOOL: [self.tool_name],
            Scope.SERVER_TOOL: [self.server_name, self.tool_name],
            Scope.AGENT: [self.agent_id],
            Scope.AGENT_TOOL: [self.agent_id, self.tool_name],
        }[scope]
        return self._key(rule_id, scope, part, names)

    def repeat_key(self, rule_id: str, scope: Scope, part: str) -> bytes:
        """Returns the 16 bytes that name the repeats of one call, but for its arguments.

        A call is repeated only by a call of the same tool. Scopes `tool` and `agent_tool` compare
        the calls of a tool on all servers; the other scopes compare calls of the same server.
        `agent` and `agent_tool` compare calls of the same agent.
        """
        on_all_servers = scope in (Scope.TOOL, Scope.AGENT_TOOL)
        names = [self.tool_name] if on_all_servers else [self.server_name, self.tool_name]
        if scope in (Scope.AGENT, Scope.AGENT_TOOL):
            names.insert(0, self.agent_id)
        return self._key(rule_id, scope, part, names)

    def _key(self, rule_id: str, scope: Scope, part: str, names: list[str]) -> bytes:
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
