"""Rate limits: a count in a fixed window, asked before the kernel and judged by a guard.

The store counts, which is a side effect, so a caller asks it before `adjudicate` and puts the count
into the state. The guard only reads it. A refused intent is rolled back and does not count.
"""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from subluminal.kernel.basis import basis
from subluminal.kernel.decisions import Decision, RefusalKind, Refuse, refuse
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.observing import Clock, MetricsSink, ResourceLimit, observed
from subluminal.kernel.policies import Guard, named


class RateLimitStore(Protocol):
    """Counts of keys, each in the window that is open."""

    def increment(self, key: str, window_ms: float, /) -> tuple[int, object]:
        """Counts one. Returns the count, and a token of the window that it was counted in."""

    def decrement(self, key: str, window: object, /) -> None:
        """Takes one back, if that window is still the open one."""


class _Window:
    """One window of one key."""

    __slots__ = ("count", "ends_at")

    def __init__(self, ends_at: float) -> None:
        self.ends_at = ends_at
        self.count = 0


class MemoryRateLimitStore:
    """Counts in memory, for one thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    def increment(self, key: str, window_ms: float, /) -> tuple[int, object]:
        now = self._clock.mono_ms()
        window = self._windows.get(key)
        if window is None or now >= window.ends_at:
            window = self._windows[key] = _Window(now + window_ms)
        window.count += 1
        return window.count, window

    def decrement(self, key: str, window: object, /) -> None:
        opened = self._windows.get(key)
        if opened is window and isinstance(opened, _Window):
            opened.count -= 1


class RateLimitCheck(Struct, frozen=True):
    """A counted attempt."""

    count: int
    exceeded: bool
    rollback: Callable[[], None]
    """takes the attempt back, once, in its own window"""


def check_rate_limit(
    store: RateLimitStore,
    key: str,
    *,
    window_ms: float,
    max: int,
    metrics: MetricsSink | None = None,
) -> RateLimitCheck:
    """Counts one attempt. It exceeds the limit if the count is above `max`."""
    count, window = store.increment(key, window_ms)
    if count > max:
        event = ResourceLimit(key, max, count)
        observed(metrics, lambda sink: sink.record_resource_limit(event))
    pending = [window]

    def rollback() -> None:
        if pending:
            store.decrement(key, pending.pop())

    return RateLimitCheck(count, count > max, rollback)


def rate_limit_guard(
    *,
    count: Callable[[IntentEnvelope, Any], int | None],
    max: int,
    rule: str = "rate_limit",
    user_facing: str = "There were too many requests. Try again later.",
) -> Guard:
    """Makes a guard that refuses above `max`. It has no opinion if `count` returns None."""

    def too_many(envelope: IntentEnvelope, state: Any) -> Decision | None:
        counted = count(envelope, state)
        if counted is None or counted <= max:
            return None
        refusal = refuse(RefusalKind.BUSINESS_RULE, "rate_limit_exceeded", user_facing)
        reason = basis("business", "rule_violated", rule=rule, count=counted, max=max)
        return Refuse(refusal, (reason,))

    return named(rule, too_many)
