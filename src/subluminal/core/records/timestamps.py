"""Timestamps of events as bytes. Formatting a date costs 2 us; its second changes rarely."""

from subluminal.clock import rfc3339


class Timestamps:
    """Writes RFC 3339 in UTC with milliseconds, and remembers the last one and its second."""

    __slots__ = ("_last", "_last_ms", "_prefix", "_second_ms")

    def __init__(self) -> None:
        self._last_ms = -1
        self._last = b""
        self._second_ms = -1_000
        self._prefix = b""

    def at(self, wall_ms: int) -> bytes:
        """Returns the timestamp of a wall clock reading."""
        if wall_ms == self._last_ms:
            return self._last
        millis = wall_ms - self._second_ms
        if not 0 <= millis < 1000:
            millis = wall_ms % 1000
            self._second_ms = wall_ms - millis
            self._prefix = rfc3339(self._second_ms)[:-4].encode()
        self._last_ms = wall_ms
        self._last = b"%b%03dZ" % (self._prefix, millis)
        return self._last
