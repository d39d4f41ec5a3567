"""A bounded queue of lines that arrived over a socket or HTTP, on their way to the writer.

From half full on, the preview texts of new lines are dropped, and counted. When the queue is full,
producers wait. A decision is never dropped.
"""

import threading
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from subluminal.journal.chain import chained_form

MAX_BYTES = 33_554_432
"""Bound of the queue in bytes of lines."""


class Parcel(Struct):
    """Lines that arrived together, and the callback for when they are stored."""

    lines: list[bytes]
    origin: str
    offset: int
    done: Callable[[bool], None]
    """called once, in the writer's thread, with whether the lines are in the ledger now"""
    size: int = 0
    """size of the lines in bytes"""
    taken: int = 0
    """lines that the writer has taken"""
    stored: int = 0
    """events that were new"""
    known: int = 0
    """events that the ledger had already"""
    quarantined: int = 0
    """lines that were not events"""


class Ring:
    """A queue between the server's threads and the writer's."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parcels: deque[Parcel] = deque()
        self._lock = threading.Lock()
        self.bytes = 0
        self._dropped = 0
        self.is_closed = False

    @property
    def is_full(self) -> bool:
        """Whether producers must wait."""
        return self.bytes >= self._max_bytes

    def put(self, parcel: Parcel) -> bool:
        """Queues lines. Returns False if the ring is full: the producer must wait and try again."""
        with self._lock:
            if self.is_full or self.is_closed:
                return False
            if self.bytes * 2 >= self._max_bytes:
                lean = [chained_form(line) for line in parcel.lines]
                self._dropped += sum(map(_differs, lean, parcel.lines))
                parcel.lines = lean
            parcel.size = sum(map(len, parcel.lines))
            self.bytes += parcel.size
            self._parcels.append(parcel)
            return True

    def take(self) -> Parcel | None:
        """Takes the oldest parcel. Its bytes count as queued until `release`."""
        with self._lock:
            return self._parcels.popleft() if self._parcels else None

    def release(self, parcels: list[Parcel], *, is_stored: bool) -> None:
        """Removes parcels from the count of bytes, and calls their `done`."""
        with self._lock:
            self.bytes -= sum(parcel.size for parcel in parcels)
        for parcel in parcels:
            parcel.done(is_stored)

    def take_dropped(self) -> int:
        """Returns how many previews were dropped since the last call."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
            return dropped

    def close(self) -> None:
        """Refuses new parcels, and reports the queued ones as not stored."""
        with self._lock:
            self.is_closed = True
            parcels = list(self._parcels)
            self._parcels.clear()
        self.release(parcels, is_stored=False)


def _differs(one: bytes, two: bytes) -> bool:
    return len(one) != len(two)
