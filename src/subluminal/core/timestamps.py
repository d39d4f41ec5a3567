"""Timestamps of events as bytes. Formatting a date costs 2 us; its second changes rarely."""

from subluminal.clock import rfc3339


class Timestamps:
    """Writes RFC 3339 in UTC with milliseconds, and remembers the last second."""

    __slots__ = ("_prefix", "_second_ms")

    def __init__(self) -> None:
        self._second_ms = -1_000
        self._prefix = b""

    def at(self, wall_ms: int) -> bytes:
        """Returns the timestamp of a wall clock reading."""
        millis = wall_ms - self._second_ms
        if not 0 <= millis < 1000:
            millis = wall_ms % 1000
            self._second_ms = wall_ms - millis
            self._prefix = rfc3339(self._second_ms)[:-4].encode()
        # Without a width, for bytes have a short way for that one.
        return b"%b%dZ" % (self._prefix, millis) if millis > 99 else self._early(millis)

    def _early(self, millis: int) -> bytes:
        return b"%b%03dZ" % (self._prefix, millis)
