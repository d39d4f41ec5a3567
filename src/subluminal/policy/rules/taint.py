"""Rule kind `taint`: lowers the level of the run before a matching call is forwarded. Additive.

The first that matches counts; `lower_to: SYSTEM` exempts a call from those below. Over layers the
lowest level holds, because a store never raises the level (`contracts.counters`).
"""

from typing import Any

from subluminal.contracts.counters import TAINT_KEY, CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.policy.rules.entry import Condition, Entry
from subluminal.policy.visit import Visit

_TAINT = CellKind.TAINT
_LEVELS = tuple(Taint)


class TaintEntry(Entry):
    """A `taint` rule."""

    __slots__ = ("rank", "update")

    def __init__(self, index: int, rule: dict[str, Any], condition: Condition | None) -> None:
        super().__init__(index, rule, condition)
        self.rank = TAINT_RANK[Taint(rule["effect"]["taint"]["lower_to"])]
        self.update = (_TAINT, TAINT_KEY, (self.rank,))

    @property
    def told(self) -> str:
        """What the rule does if a call matches, in words."""
        return f"lowers the run to {_LEVELS[self.rank]}" if self.rank else "exempts the call"

    def visit(self, visit: Visit) -> Decision | None:
        """Notes the level that the run has if the call is forwarded. Never decides."""
        if not visit.taint_settled:
            visit.taint_settled = True
            if self.rank:
                visit.lowered_by = self.rule_id
                visit.if_forwarded.append(self.update)
        return None
