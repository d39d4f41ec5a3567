"""Rule kind `tag`: adds risk classes to a call, which the rules below can match (Pack 2.5)."""

from typing import Any

from subluminal.contracts.decision import Decision
from subluminal.policy.rules.entry import Condition, Entry
from subluminal.policy.visit import Visit


class TagEntry(Entry):
    """A `tag` rule that has a condition. Tags without one are settled in ToolRules."""

    __slots__ = ("classes",)

    def __init__(self, index: int, rule: dict[str, Any], condition: Condition | None) -> None:
        super().__init__(index, rule, condition)
        self.classes = frozenset(rule["effect"]["tag"]["add_risk_class"])

    def visit(self, visit: Visit) -> Decision | None:
        """Adds the risk classes. Never decides."""
        visit.classes = visit.classes | self.classes
        return None
