"""Rule kind `budget`: a cap on calls or cost units, which never refills in a run (Pack 2.5)."""

from typing import Any

from subluminal.contracts.counters import CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import HintKind, ReasonCode
from subluminal.counts import counted
from subluminal.policy.rules.entry import Condition, Subject
from subluminal.policy.rules.limit import LimitEntry, span
from subluminal.policy.visit import Visit

# Looked up once: in Python 3.11 an enum member costs as much as a tuple.
_PAIR = CellKind.PAIR
_CEILING = 1 << 61
"""Cost units stop counting here, so that no sum exceeds 64 bits. Calls never get that far."""
_NO_LIMIT = 1 << 62


class BudgetEntry(LimitEntry):
    """A `budget` rule. Its cell is (calls, cost units)."""

    __slots__ = ("_budget", "_cost", "_key", "_limit_calls", "_limit_cost", "_on_attempt")

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition, subject)
        self._budget = budget = rule["effect"]["budget"]
        self._key = subject.counter_key(self.rule_id, self.scope, "budget")
        self._cost: int = budget["cost_units_per_call"]
        self._limit_calls = _or_no_limit(budget["limit_calls"])
        self._limit_cost = _or_no_limit(budget["limit_cost_units"])
        self._on_attempt = budget["count"] == "attempts"

    def visit(self, visit: Visit) -> Decision | None:
        """Counts the call, and refuses it beyond a limit. By default refused calls count too."""
        calls, cost = visit.read(_PAIR, self._key) or (0, 0)
        calls += 1
        if cost < _CEILING:
            cost += self._cost
        update = (_PAIR, self._key, (calls, cost))
        if self._on_attempt:
            visit.updates.append(update)
        else:
            visit.if_forwarded.append(update)
        if calls <= self._limit_calls and cost <= self._limit_cost:
            return None
        return self._exceeded(visit, calls > self._limit_calls)

    def _exceeded(self, visit: Visit, by_calls: bool) -> Decision:
        budget = self._budget
        calls, cost = counted(self._limit_calls, "call"), counted(self._limit_cost, "cost unit")
        limit = calls if by_calls else cost
        return self.refuse(
            visit,
            budget["on_exceed"],
            ReasonCode.BUDGET_EXCEEDED,
            f"the budget of {limit} {span(self.scope)} is spent",
            kind=HintKind.BUDGET,
            hint_text=budget["hint_text"],
            advice="do not retry: this budget does not refill during the run",
        )


def _or_no_limit(limit: int | None) -> int:
    return _NO_LIMIT if limit is None else limit
