"""Rule kind `tag`: adds risk classes that the rules below it may match (Pack 2.5, rule-evaluation)."""

from typing import Any

from subluminal.contracts.decision import Decision
from subluminal.policy.rules.entry import Entry, Guard
from subluminal.policy.visit import Visit


class TagEntry(Entry):
    """A `tag` rule whose classes depend on more than names; others are settled in the plan."""

    __slots__ = ("classes",)

    def __init__(self, index: int, rule: dict[str, Any], guard: Guard | None) -> None:
        super().__init__(index, rule, guard)
        self.classes = frozenset(rule["effect"]["tag"]["add_risk_class"])

    def visit(self, visit: Visit) -> Decision | None:
        """Adds the classes. Never decides."""
        visit.classes = visit.classes | self.classes
        return None
