"""Rule kind `rate_limit`: a token bucket in integer micro-tokens (Pack 2.5, rule-evaluation).

The bucket starts full and refills continuously. A refused call takes no token.
"""

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
_MICRO = 1_000_000


class RateLimitEntry(LimitEntry):
    """A `rate_limit` rule. Its cell is (micro-tokens, time of the last refill in milliseconds)."""

    __slots__ = ("_capacity", "_cost", "_key", "_limit", "_period_ms", "_rate")

    def __init__(
        self, index: int, rule: dict[str, Any], condition: Condition | None, subject: Subject
    ) -> None:
        super().__init__(index, rule, condition, subject)
        self._limit = limit = rule["effect"]["rate_limit"]
        self._key = subject.counter_key(self.rule_id, self.scope, "bucket")
        self._capacity: int = limit["capacity"] * _MICRO
        self._cost: int = limit["cost_tokens_per_call"] * _MICRO
        self._rate: int = limit["refill_tokens"] * _MICRO
        self._period_ms: int = limit["refill_period_ms"]

    def visit(self, visit: Visit) -> Decision | None:
        """Takes the tokens of the call, or refuses it."""
        now_ms = visit.mono_ms
        cell = visit.read(_PAIR, self._key)
        tokens, at_ms = self._refilled(cell, now_ms) if cell else (self._capacity, now_ms)
        if tokens < self._cost:
            return self._limited(visit, tokens)
        visit.updates.append((_PAIR, self._key, (tokens - self._cost, at_ms)))
        return None

    def _refilled(self, cell: tuple[int, ...], now_ms: int) -> tuple[int, int]:
        tokens, at_ms = cell
        if at_ms >= now_ms:  # the same millisecond, or the machine has restarted
            return tokens, now_ms
        earned, left_over = divmod((now_ms - at_ms) * self._rate, self._period_ms)
        if tokens + earned >= self._capacity:
            return self._capacity, now_ms
        # Time that has not earned a whole micro-token yet is kept for the next refill. Without
        # that, a slow bucket that is read often would never refill.
        return tokens + earned, now_ms - left_over // self._rate

    def _limited(self, visit: Visit, tokens: int) -> Decision:
        limit = self._limit
        wait_ms = -(-(self._cost - tokens) * self._period_ms // self._rate)
        return self.refuse(
            visit,
            limit["on_limit"],
            ReasonCode.RATE_LIMITED,
            f"more than {counted(limit['refill_tokens'], 'call')} {span(self.scope)}"
            f" per {self._period_ms} ms",
            kind=HintKind.RATE,
            hint_text=limit["hint_text"],
            advice=f"retry after {max(wait_ms, limit['backoff_ms'] or 0)} ms",
            backoff_ms=limit["backoff_ms"],
        )
