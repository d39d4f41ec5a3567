"""Live events, without a gap and without a double, whether ledgerd runs, restarts or never comes.

While ledgerd serves its stream, events come from there: it also knows what came by other roads
than journals. While it does not, they come from the journals. An event's key is (shim_id, n), on
both roads (journal-first), so what came by one is dropped when the other brings it again.
"""

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from subluminal.clock import rfc3339
from subluminal.config.places import Places
from subluminal.ledger.client.journals import Event, Journals
from subluminal.ledger.client.roads import StreamEnded, socket_path

if TYPE_CHECKING:
    from subluminal.ledger.client.stream import Stream

POLL_S = 0.1
RETRY_S = 0.5
"""How often a daemon that is not there is looked for."""


class Seen:
    """Tells new events from those that another road brought already."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def is_new(self, event: Event) -> bool:
        """Each shim's events come in order on every road."""
        source = event.get("source", {})
        shim, n = source.get("shim_id"), source.get("n")
        if not isinstance(shim, str) or not isinstance(n, int):
            return True
        if n <= self._last.get(shim, 0):
            return False
        self._last[shim] = n
        return True


class Live:
    """Events from now on, or from the beginning."""

    def __init__(self, places: Places, since_ms: int) -> None:
        self._places = places
        self._since_ms = since_ms
        self._since = rfc3339(since_ms)
        self._seen = Seen()
        self._journals: Journals | None = None
        self._stream: Stream | None = None
        self._position: int | None = None
        self._retry_at = 0.0

    def history(self, run: str | None = None) -> Iterator[Event]:
        """What the journals hold already."""
        self._journals = Journals(self._places.journal, self._since_ms, run=run)
        return self._new(self._journals.history())

    def wait(self) -> list[Event]:
        """What is new, after waiting for it for a moment."""
        if self._stream is None and self._maybe_connect():
            # What was journalled before the stream began may be behind its position already.
            return list(self._new(self._from_journals(look=True)))
        if self._stream is not None:
            try:
                return list(self._new(self._stream.read(POLL_S)))
            except StreamEnded:
                self._disconnect()
        found = list(self._new(self._from_journals()))
        if not found:
            time.sleep(POLL_S)
        return found

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _new(self, events: "Iterator[Event] | list[Event]") -> Iterator[Event]:
        for event in events:
            if self._seen.is_new(event) and event["ts"] >= self._since:
                yield event

    def _from_journals(self, *, look: bool = False) -> list[Event]:
        if self._journals is None:
            self._journals = Journals(self._places.journal, self._since_ms)
        return self._journals.news(look=look)

    def _maybe_connect(self) -> bool:
        if time.monotonic() < self._retry_at:
            return False
        self._retry_at = time.monotonic() + RETRY_S
        if not os.path.exists(socket_path(self._places)):
            return False
        # Loaded only where a daemon may answer: sockets cost as much as all the rest here.
        from subluminal.ledger.client import socket as daemon
        from subluminal.ledger.client.stream import Stream

        try:
            if self._position is None:
                # A position is a number of events, so this is the newest one's.
                self._position = daemon.get(self._places, "/v1/status", {})["events_total"]
            self._stream = Stream(self._places, self._position or 0)
        except daemon.NotRunning:
            return False
        return True

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._position = self._stream.position
            self._stream.close()
            self._stream = None
        self._retry_at = 0.0
