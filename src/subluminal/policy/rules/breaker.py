"""Rule kind `breaker`: refuses calls after repeated errors, repeats or slow calls (Pack 2.5).

Errors and slow calls are counted when a forwarded call ends (`learn`). After the Nth in the window,
the next call is refused. Repeats are counted when a call arrives: the Nth identical call is
refused. A breaker has no state besides its windows: when they are over, calls pass again.
"""

from typing import Any, NamedTuple

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.contracts.decision import Decision
from subluminal.contracts.events import Trip
from subluminal.contracts.limits import MAX_WINDOW_ENTRIES
from subluminal.contracts.vocabulary import Action, HintKind, ReasonCode, Status
from subluminal.policy import windows
from subluminal.policy.rules.entry import Condition, Subject
from subluminal.policy.rules.limit import LimitEntry, span
from subluminal.policy.visit import Visit

# Looked up once: in Python 3.11 an enum member costs as much as a tuple.
_RECENT = CellKind.RECENT
_WINDOW = CellKind.WINDOW
_FAILED = frozenset({Status.ERROR, Status.TIMEOUT})


class _Window(NamedTuple):
    key: bytes
    threshold: int
    window_ms: int


class BreakerEntry(LimitEntry):
    """A `breaker` rule: up to three windows, each optional."""

    __slots__ = (
        "_breaker",
        "_errors",
        "_latency_ms",
        "_learns",
        "_mask",
        "_repeats",
        "_slow",
        "watches_latency",
    )

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition, subject)
        self._breaker = breaker = rule["effect"]["breaker"]

        def window(part: str, threshold: int | None, window_ms: int | None) -> _Window | None:
            if threshold is None or window_ms is None:
                return None
            # A reload may change the width of the buckets, and with it the meaning of a cell.
            if threshold > MAX_WINDOW_ENTRIES:
                part = f"{part} by {windows.width(window_ms)} ms"
            name = subject.repeat_key if part.startswith("repeats") else subject.counter_key
            return _Window(name(self.rule_id, self.scope, part), threshold, window_ms)

        self._errors = window("errors", breaker["error_threshold"], breaker["window_ms"])
        self._slow = window("slow", breaker["latency_count"], breaker["window_ms"])
        self._latency_ms: int | None = breaker["latency_threshold_ms"]
        self.watches_latency = self._slow is not None
        """whether a call that ends OK may count"""
        self._learns = self._errors is not None or self._slow is not None
        self._repeats = window("repeats", breaker["repeat_threshold"], breaker["repeat_window_ms"])
        self._mask = 0 if self._repeats is None else int.from_bytes(self._repeats.key, "big")

    def visit(self, visit: Visit) -> Decision | None:
        """Refuses the call if one of the windows is full."""
        cause = None
        if self._learns:
            visit.watches += (self,)
            cause = self._full(visit, self._errors, "errors")
            if cause is None and self._slow is not None:
                cause = self._full(visit, self._slow, "latency")
        # A repeat counts even if another window trips. Then unread arguments are not an error.
        if self._repeats is not None and (cause is None or visit.args is not None):
            cause = self._repeated(visit, self._repeats, cause)
        return None if cause is None else self._trip(visit, *cause)

    def learn(self, read: Any, status: Status, latency_ms: int, now_ms: int) -> list[Update]:
        """Returns the updates of the windows after a forwarded call has ended."""
        updates: list[Update] = []
        if self._errors is not None and status in _FAILED:
            updates.append(_recorded(read, self._errors, now_ms))
        slow = self._latency_ms is not None and latency_ms > self._latency_ms
        if self._slow is not None and slow:
            updates.append(_recorded(read, self._slow, now_ms))
        return updates

    def _full(self, visit: Visit, window: _Window | None, cause: str) -> tuple[str, int] | None:
        if window is None:
            return None
        cell = visit.read(_WINDOW, window.key)
        if not cell:
            return None
        number = windows.count(cell, window.threshold, window.window_ms, visit.mono_ms)
        return (cause, number) if number >= window.threshold else None

    def _repeated(
        self, visit: Visit, window: _Window, cause: tuple[str, int] | None
    ) -> tuple[str, int] | None:
        """Counts a repeat. Returns the cause of the trip: the given one, else the repeats."""
        if visit.call.granted:  # the retry of an approved call is exempt (no-call-waits)
            return cause
        rule_key, threshold, window_ms = window
        now_ms = visit.mono_ms
        key = visit.repeat_key(rule_key, self._mask)
        cell = visit.read(_RECENT, key)
        if cell or threshold > MAX_WINDOW_ENTRIES:
            cell = windows.record(cell, threshold, window_ms, now_ms)
            number = windows.count(cell, threshold, window_ms, now_ms)
        else:  # nearly every call is the first of its kind
            cell, number = (now_ms,), 1
        visit.updates.append((_RECENT, key, cell))
        return cause or (("repeats", number) if number >= threshold else None)

    def _trip(self, visit: Visit, cause: str, number: int) -> Decision:
        breaker = self._breaker
        window_ms = breaker["repeat_window_ms" if cause == "repeats" else "window_ms"]
        what = {
            "errors": f"{number} errors {span(self.scope)}",
            "latency": f"{number} slow calls {span(self.scope)}",
            "repeats": f"the same call was made {number} times",
        }[cause]
        decision = self.refuse(
            visit,
            breaker["on_trip"],
            ReasonCode.BREAKER_TRIPPED,
            f"{what} within {window_ms} ms",
            kind=HintKind.SAFETY,
            hint_text=breaker["hint_text"],
            advice="do not repeat what failed: change the approach, or wait for the window to pass",
            terminate_code=breaker["terminate_code"],
        )
        if decision.action is not Action.ALLOW:
            trip = Trip(
                rule_id=self.rule_id,
                scope=self.scope,
                action=decision.action,
                cause=cause,
                count=number,
            )
            visit.trips += (trip,)
        return decision


def _recorded(read: Any, window: _Window, now_ms: int) -> Update:
    cell: Cell = read(_WINDOW, window.key)
    new = windows.record(cell, window.threshold, window.window_ms, now_ms)
    return (_WINDOW, window.key, new)
