"""Rule kind `breaker`: stops what goes wrong again and again (Pack 2.5, rule-evaluation).

Errors and slow calls are learnt when a forwarded call ends (`learn`); the call after the Nth one
in the window trips. Repeats are counted as calls come; the Nth identical one trips. Nothing
latches: when the window has passed, calls pass again.
"""

from typing import Any, NamedTuple

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.contracts.decision import Decision
from subluminal.contracts.events import Trip
from subluminal.contracts.limits import MAX_WINDOW_ENTRIES
from subluminal.contracts.vocabulary import Action, HintKind, ReasonCode, Scope, Status
from subluminal.policy import windows
from subluminal.policy.rules.entry import Entry, Guard, Subject, span
from subluminal.policy.visit import Visit

# A member is fetched once: in 3.11 that costs as much as a tuple.
_RECENT = CellKind.RECENT
_WINDOW = CellKind.WINDOW
_FAILED = frozenset({Status.ERROR, Status.TIMEOUT})


class _Window(NamedTuple):
    key: bytes
    threshold: int
    window_ms: int


class BreakerEntry(Entry):
    """A `breaker` rule: up to three windows, each optional."""

    __slots__ = (
        "_breaker",
        "_errors",
        "_latency_ms",
        "_learns",
        "_repeats",
        "_slow",
        "scope",
        "watches_latency",
    )

    def __init__(
        self, index: int, rule: dict[str, Any], guard: Guard | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, guard)
        self._breaker = breaker = rule["effect"]["breaker"]
        self.scope = Scope(breaker["scope"])

        def window(part: str, threshold: int | None, window_ms: int | None) -> _Window | None:
            if threshold is None or window_ms is None:
                return None
            if threshold > MAX_WINDOW_ENTRIES:  # a reload may change how a cell is to be read
                part = f"{part} by {windows.width(window_ms)} ms"
            key = subject.counter_key(self.rule_id, self.scope, part)
            return _Window(key, threshold, window_ms)

        self._errors = window("errors", breaker["error_threshold"], breaker["window_ms"])
        self._slow = window("slow", breaker["latency_count"], breaker["window_ms"])
        self._latency_ms: int | None = breaker["latency_threshold_ms"]
        self.watches_latency = self._slow is not None
        """whether a call that ends well may still count"""
        self._learns = self._errors is not None or self._slow is not None
        self._repeats = window("repeats", breaker["repeat_threshold"], breaker["repeat_window_ms"])

    def visit(self, visit: Visit) -> Decision | None:
        """Refuses the call if one of the windows is full. Every window is looked at."""
        cause = None
        if self._learns:
            visit.watches += (self,)
            cause = self._full(visit, self._errors, "errors")
            if cause is None and self._slow is not None:
                cause = self._full(visit, self._slow, "latency")
        # A repeat counts, whatever else trips. What trips anyway needs no arguments to compare.
        if self._repeats is not None and (cause is None or visit.args is not None):
            cause = self._repeated(visit, self._repeats, cause)
        return None if cause is None else self._trip(visit, *cause)

    def learn(self, read: Any, status: Status, latency_ms: int, now_ms: int) -> list[Update]:
        """Returns what a forwarded call's end adds to the windows."""
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
        """Counts a repeat. Returns what trips: the given cause, else the repeats if they do."""
        if visit.call.granted:  # exempt (no-call-waits)
            return cause
        rule_key, threshold, window_ms = window
        now_ms = visit.mono_ms
        key = (visit.args_key or visit.name_args()) + rule_key
        cell = visit.read(_RECENT, key)
        if cell or threshold > MAX_WINDOW_ENTRIES:
            cell = windows.record(cell, threshold, window_ms, now_ms)
            number = windows.count(cell, threshold, window_ms, now_ms)
        else:  # as nearly all are: the first
            cell, number = (now_ms,), 1
        visit.updates.append((_RECENT, key, cell))
        return cause or (("repeats", number) if number >= threshold else None)

    def _trip(self, visit: Visit, cause: str, number: int) -> Decision:
        breaker = self._breaker
        trip = Trip(
            rule_id=self.rule_id,
            scope=self.scope,
            action=Action(breaker["on_trip"]),
            cause=cause,
            count=number,
        )
        visit.trips += (trip,)
        window_ms = breaker["repeat_window_ms" if cause == "repeats" else "window_ms"]
        what = {
            "errors": f"{number} errors",
            "latency": f"{number} slow calls",
            "repeats": f"the same call {number} times",
        }[cause]
        return self.refuse(
            breaker["on_trip"],
            ReasonCode.BREAKER_TRIPPED,
            f"{what} within {window_ms} ms {span(self.scope)}",
            kind=HintKind.SAFETY,
            hint_text=breaker["hint_text"],
            advice="do not repeat what failed: change the approach, or wait for the window to pass",
            terminate_code=breaker["terminate_code"],
        )


def _recorded(read: Any, window: _Window, now_ms: int) -> Update:
    cell: Cell = read(_WINDOW, window.key)
    new = windows.record(cell, window.threshold, window.window_ms, now_ms)
    return (_WINDOW, window.key, new)
