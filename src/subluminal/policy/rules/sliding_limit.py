"""Rule kind `rate_limit` with `max_calls`: at most so many calls pass in any window. Additive.

Only forwarded calls count. One that passed exactly `window_ms` ago still counts, as in Agent-SPM.
"""

from typing import Any

from subluminal.contracts.counters import CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.limits import MAX_WINDOW_ENTRIES
from subluminal.contracts.vocabulary import HintKind, ReasonCode
from subluminal.counts import counted
from subluminal.policy import windows
from subluminal.policy.rules.entry import Condition, Subject
from subluminal.policy.rules.limit import LimitEntry, span
from subluminal.policy.visit import Visit

# Looked up once: in Python 3.11 an enum member costs as much as a tuple.
_WINDOW = CellKind.WINDOW


class SlidingLimitEntry(LimitEntry):
    """A `rate_limit` rule with a sliding window. Its cell is that of `policy.windows`."""

    __slots__ = ("_key", "_limit", "_max_calls", "_open_ms")

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition, subject)
        self._limit = limit = rule["effect"]["rate_limit"]
        self._max_calls: int = limit["max_calls"]
        self._open_ms: int = limit["window_ms"] + 1
        """windows are half-open, and this one includes its end"""
        part = "calls"
        if self._max_calls > MAX_WINDOW_ENTRIES:
            # A reload may change the width of the buckets, and with it the meaning of a cell.
            part = f"calls by {windows.width(self._open_ms)} ms"
        self._key = subject.counter_key(self.rule_id, self.scope, part)

    def visit(self, visit: Visit) -> Decision | None:
        """Counts the call if it is forwarded, or refuses it."""
        now_ms = visit.mono_ms
        cell = visit.read(_WINDOW, self._key)
        new = windows.record(cell, self._max_calls, self._open_ms, now_ms)
        visit.if_forwarded.append((_WINDOW, self._key, new))
        if windows.count(cell, self._max_calls, self._open_ms, now_ms) < self._max_calls:
            return None
        limit = self._limit
        wait_ms = windows.until_room(cell, self._max_calls, self._open_ms, now_ms)
        return self.refuse(
            visit,
            limit["on_limit"],
            ReasonCode.RATE_LIMITED,
            f"more than {counted(self._max_calls, 'call')} {span(self.scope)}"
            f" in {limit['window_ms']} ms",
            kind=HintKind.RATE,
            hint_text=limit["hint_text"],
            advice=f"retry after {max(wait_ms, limit['backoff_ms'] or 0)} ms",
            backoff_ms=limit["backoff_ms"],
        )
