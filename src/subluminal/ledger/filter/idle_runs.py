"""Runs without a call, such as those of `claude mcp list`: lists leave them out unless asked.

A run without a call that failed, or that a person stopped, is not left out.
"""

from typing import Any, Generic, TypeVar

from subluminal.contracts.vocabulary import EventType, RunStatus
from subluminal.ledger.filter.language import Filter, terms_of

Event = dict[str, Any]
Item = TypeVar("Item")

MAX_RUNS = 1_024
"""The most runs whose events are held back; the oldest are let through first."""
MAX_HELD = 256
"""The most events that are held back of one run."""

_QUIET = (EventType.RUN_START, EventType.TOOLS_LISTED)
"""Events that every run has, and that tell nothing."""


def asks_for_idle(terms: Filter) -> bool:
    """Whether a filter says itself which runs it means, so that no run is left out."""
    return any(terms_of(terms, name) for name in ("run", "status", "calls"))


def is_idle(status: str | None, calls: int) -> bool:
    """Whether a run is left out, by its status (None while it runs) and its number of calls."""
    return not calls and status in (None, RunStatus.SUCCEEDED)


class IdleRuns(Generic[Item]):
    """Holds back the events of each run until the run makes a call or fails.

    An item is whatever the caller wants to have back for an event.
    """

    def __init__(self) -> None:
        self._held: dict[str, list[Item]] = {}
        self._shown: dict[str, None] = {}
        self.hidden: set[str] = set()
        """ids of the runs that ended without a call"""

    def admit(self, event: Event, item: Item) -> list[Item]:
        """Returns the items to show now: none, or those held back of the run and this one."""
        run = str(event.get("run_id", ""))
        if run in self._shown:
            return [item]
        held = self._held.setdefault(run, [])
        held.append(item)
        if _is_telling(event) or len(held) > MAX_HELD:
            return self._show(run)
        if event["type"] == EventType.RUN_END:
            del self._held[run]
            self.hidden.add(run)
        return self._show(next(iter(self._held))) if len(self._held) > MAX_RUNS else []

    def _show(self, run: str) -> list[Item]:
        self._shown[run] = None
        if len(self._shown) > MAX_RUNS * 8:
            del self._shown[next(iter(self._shown))]
        self.hidden.discard(run)
        return self._held.pop(run, [])


def _is_telling(event: Event) -> bool:
    """Whether an event makes its run worth showing."""
    match event["type"]:
        case EventType.RUN_END:
            run = event["run"]
            return not is_idle(run["status"], run["summary"]["calls_total"])
        case EventType.SHIM_HEALTH:
            health = event["health"]
            has_failed = health["state"] == "exited" and "detail" in health
            return has_failed or health["state"] in ("degraded", "failed")
        case EventType.POLICY_LOADED:
            return not event["load"]["ok"]
        case EventType.SECRET_INJECTION:
            return not event["injection"]["success"]
        case kind:
            return kind not in _QUIET
