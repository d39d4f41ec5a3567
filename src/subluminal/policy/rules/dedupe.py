"""Rule kind `dedupe`: refuses the same call twice in a window (Pack 2.5, rule-evaluation).

Only forwarded calls are remembered. A refused duplicate does not extend the window.
"""

from typing import Any

from subluminal.contracts.counters import CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import HintKind, ReasonCode
from subluminal.policy.rules.entry import Condition, Subject
from subluminal.policy.rules.limit import LimitEntry
from subluminal.policy.visit import Visit

# Looked up once: in Python 3.11 an enum member costs as much as a tuple.
_RECENT = CellKind.RECENT


class DedupeEntry(LimitEntry):
    """A `dedupe` rule. Its cell is the time of the last forwarded call."""

    __slots__ = ("_dedupe", "_key", "_mask", "_window_ms")

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition, subject)
        self._dedupe = dedupe = rule["effect"]["dedupe"]
        self._key = subject.repeat_key(self.rule_id, self.scope, "dedupe")
        self._mask = int.from_bytes(self._key, "big")
        self._window_ms: int = dedupe["window_ms"]

    def visit(self, visit: Visit) -> Decision | None:
        """Refuses a call if an equal one was forwarded less than `window_ms` ago."""
        if visit.call.granted:  # the retry of an approved call is exempt (no-call-waits)
            return None
        key = visit.repeat_key(self._key, self._mask)
        now_ms = visit.mono_ms
        cell = visit.read(_RECENT, key)
        # Windows are half-open, [seen, seen + window): a call exactly window_ms later is new.
        # Ages can be negative in records of earlier versions, which read the clock before the lock.
        if cell and -self._window_ms < now_ms - cell[0] < self._window_ms:
            return self._duplicate(visit, max(0, now_ms - cell[0]))
        visit.if_forwarded.append((_RECENT, key, (now_ms,)))
        return None

    def _duplicate(self, visit: Visit, age_ms: int) -> Decision:
        dedupe = self._dedupe
        return self.refuse(
            visit,
            dedupe["on_duplicate"],
            ReasonCode.DEDUPE_DUPLICATE,
            f"the same call was made {age_ms} ms ago",
            kind=HintKind.SAFETY,
            hint_text=dedupe["hint_text"],
            advice="do not repeat the call: use the result of the earlier one",
        )
