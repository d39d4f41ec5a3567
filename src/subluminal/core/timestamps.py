"""Timestamps of events as bytes. Formatting a date costs 2 us; its second changes rarely."""

from subluminal.clock import rfc3339


class Timestamps:
    """Writes RFC 3339 in UTC with milliseconds, and remembers the last second."""

    __slots__ = ("_prefix", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._prefix = b""

    def at(self, wall_ms: int) -> bytes:
        """Returns the timestamp of a wall clock reading."""
        second, millis = divmod(wall_ms, 1000)
        if second != self._second:
            self._second = second
            self._prefix = rfc3339(second * 1000)[:-4].encode()
        return b"%b%03dZ" % (self._prefix, millis)
