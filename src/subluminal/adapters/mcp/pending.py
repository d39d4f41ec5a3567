"""Forwarded calls that have not ended, by the id of their request or the state of their round.

Ids come from the client, so two calls may share one. Then the server's first answer is for the
first call.
"""

from collections import deque
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from subluminal.adapters.mcp.messages import id_key
from subluminal.contracts.call import ToolCall
from subluminal.core.ruling import Ruling

MAX_ROUNDS = 256
"""Most calls that wait for more input from the client (every-mcp-era)."""


class Pending(Struct):
    """A forwarded call."""

    ruling: Ruling
    deadline_ns: int
    rounds: int = 1
    """number of the last round that was forwarded"""


class PendingCalls:
    """Calls that wait for the server's answer, or for the client's next round."""

    def __init__(self) -> None:
        self._asked: dict[tuple[bool, Any], Pending] = {}
        self._asked_again: dict[tuple[bool, Any], deque[Pending]] = {}
        """later calls with an id that is already pending, in order"""
        self._rounds: dict[tuple[str, str, str, str], Pending] = {}
        self.open = 0
        """number of calls that wait for the server"""

    def __iter__(self) -> Iterator[Pending]:
        """Yields every pending call."""
        yield from self.asked()
        yield from self._rounds.values()

    def asked(self) -> Iterator[Pending]:
        """Yields the calls that wait for the server."""
        for key, first in self._asked.items():
            yield first
            yield from self._asked_again.get(key, ())

    def with_ids(self) -> list[tuple[Any, Pending]]:
        """Returns the calls that wait for the server, each with the id of its request.

        An id that is neither a number nor a string is given as its JSON text.
        """
        return [
            (key[1], each)
            for key, first in self._asked.items()
            for each in (first, *self._asked_again.get(key, ()))
        ]

    def ask(self, request_id: Any, pending: Pending) -> None:
        """Remembers a call under its request's id."""
        key = id_key(request_id)
        if self._asked.setdefault(key, pending) is not pending:
            self._asked_again.setdefault(key, deque()).append(pending)
        self.open += 1

    def answered(self, request_id: Any) -> Pending | None:
        """Removes and returns the call that an answer is for, or None."""
        key = id_key(request_id)
        pending = self._asked.pop(key, None)
        if pending is None:
            return None
        if self._asked_again:
            self._move_up(key)
        self.open -= 1
        return pending

    def _move_up(self, key: tuple[bool, Any]) -> None:
        """Makes the next call with an id the one that the next answer is for."""
        again = self._asked_again.get(key)
        if again:
            self._asked[key] = again.popleft()
            if not again:
                del self._asked_again[key]

    def cancelled(self, request_id: Any) -> list[Pending]:
        """Removes and returns every call that a cancellation is for."""
        key = id_key(request_id)
        found = [self._asked.pop(key)] if key in self._asked else []
        found += self._asked_again.pop(key, ())
        self.open -= len(found)
        return found

    def await_round(self, pending: Pending, request_state: str) -> Pending | None:
        """Keeps a call until the client continues it; returns a call that is given up, or None.

        A call is given up if another one has the same key, or if there are too many.
        """
        key = _round_key(pending.ruling.run_id, pending.ruling.call, request_state)
        given_up = self._rounds.pop(key, None)
        if given_up is None and len(self._rounds) >= MAX_ROUNDS:
            given_up = self._rounds.pop(next(iter(self._rounds)))
        self._rounds[key] = pending
        return given_up

    def next_round(self, run_id: str, call: ToolCall, request_state: str) -> Pending | None:
        """Removes and returns the call with the same run, tool, arguments and state, or None."""
        return self._rounds.pop(_round_key(run_id, call, request_state), None)

    def clear(self) -> list[Pending]:
        """Removes and returns every pending call."""
        found = list(self)
        self._asked.clear()
        self._asked_again.clear()
        self._rounds.clear()
        self.open = 0
        return found


def _round_key(run_id: str, call: ToolCall, request_state: str) -> tuple[str, str, str, str]:
    return (run_id, call.tool_name, call.args_hash, request_state)
