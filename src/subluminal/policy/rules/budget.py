"""Rule kind `budget`: a cap on calls or cost units, which never refills in a run (Pack 2.5).

Additive: with `reset_ms` it starts anew that long after the first call that it counted.
"""

from typing import Any

from subluminal.contracts.counters import CellKind, Update
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import HintKind, ReasonCode
from subluminal.counts import counted
from subluminal.policy.rules.entry import Condition, Subject
from subluminal.policy.rules.limit import LimitEntry, span
from subluminal.policy.visit import Visit

# Looked up once: in Python 3.11 an enum member costs as much as a tuple.
_PAIR = CellKind.PAIR
_WINDOW = CellKind.WINDOW
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
        if self._on_attempt:  # `count`, inlined
            visit.updates.append(update)
        else:
            visit.if_forwarded.append(update)
        if calls <= self._limit_calls and cost <= self._limit_cost:
            return None
        advice = "do not retry: this budget does not refill during the run"
        return self.exceeded(visit, calls > self._limit_calls, advice)

    def count(self, visit: Visit, update: Update) -> None:
        """Counts the call, or only if it is forwarded."""
        if self._on_attempt:
            visit.updates.append(update)
        else:
            visit.if_forwarded.append(update)

    def exceeded(self, visit: Visit, by_calls: bool, advice: str) -> Decision:
        """Refuses the call."""
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
            advice=advice,
        )


class ResettingBudgetEntry(BudgetEntry):
    """A `budget` rule with `reset_ms`. Its cell is (calls, cost units, time of the first call)."""

    __slots__ = ("_reset_ms",)

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition, subject)
        self._key = subject.counter_key(self.rule_id, self.scope, "resetting budget")
        self._reset_ms: int = rule["effect"]["budget"]["reset_ms"]

    def visit(self, visit: Visit) -> Decision | None:
        """Counts the call in its period, and refuses it beyond a limit."""
        now_ms = visit.mono_ms
        calls, cost, since_ms = visit.read(_WINDOW, self._key) or (0, 0, now_ms)
        if since_ms > now_ms:  # the machine has restarted
            since_ms = now_ms
        if now_ms - since_ms >= self._reset_ms:
            calls, cost, since_ms = 0, 0, now_ms
        calls, cost = calls + 1, min(cost + self._cost, _CEILING)
        self.count(visit, (_WINDOW, self._key, (calls, cost, since_ms)))
        if calls <= self._limit_calls and cost <= self._limit_cost:
            return None
        advice = f"retry after {since_ms + self._reset_ms - now_ms} ms: the budget starts anew then"
        return self.exceeded(visit, calls > self._limit_calls, advice)


def _or_no_limit(limit: int | None) -> int:
    return _NO_LIMIT if limit is None else limit
