"""Rule kind `dedupe`: refuses the same call twice inside a window (Pack 2.5).

Only forwarded calls are remembered, and a refused duplicate does not refresh the window (rule-evaluation).
"""

from typing import Any

from subluminal.contracts.counters import CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import HintKind, ReasonCode, Scope
from subluminal.policy.rules.entry import Entry, Guard, Subject
from subluminal.policy.visit import Visit

# A member is fetched once: in 3.11 that costs as much as a tuple.
_RECENT = CellKind.RECENT


class DedupeEntry(Entry):
    """A `dedupe` rule. Its cell is the time of the last forwarded call."""

    __slots__ = ("_dedupe", "_key", "_window_ms", "scope")

    def __init__(
        self, index: int, rule: dict[str, Any], guard: Guard | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, guard)
        self._dedupe = dedupe = rule["effect"]["dedupe"]
        self.scope = Scope(dedupe["scope"])
        self._key = subject.counter_key(self.rule_id, self.scope, "dedupe")
        self._window_ms: int = dedupe["window_ms"]

    def visit(self, visit: Visit) -> Decision | None:
        """Refuses a call that repeats one seen less than `window_ms` ago."""
        if visit.call.granted:  # exempt (no-call-waits)
            return None
        key = (visit.args_key or visit.name_args()) + self._key
        now_ms = visit.mono_ms
        cell = visit.read(_RECENT, key)
        # A call exactly window_ms old is new: windows are half-open, [seen, seen + window).
        # A negative age is in records of earlier versions, which read the clock before the lock.
        if cell and -self._window_ms < now_ms - cell[0] < self._window_ms:
            return self._duplicate(max(0, now_ms - cell[0]))
        visit.if_forwarded.append((_RECENT, key, (now_ms,)))
        return None

    def _duplicate(self, age_ms: int) -> Decision:
        dedupe = self._dedupe
        return self.refuse(
            dedupe["on_duplicate"],
            ReasonCode.DEDUPE_DUPLICATE,
            f"the same call was made {age_ms} ms ago",
            kind=HintKind.SAFETY,
            hint_text=dedupe["hint_text"],
            advice="do not repeat it: the earlier call stands",
        )
