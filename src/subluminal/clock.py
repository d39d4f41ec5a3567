"""Readings of both clocks, and the one way to write wall-clock time as text.

Deciding code (`policy`, `contracts`, `canonical`) never reads a clock: `now` is an argument there,
and import-linter keeps `time` and this module out. Code that only measures a wait or a timeout
reads `time` itself. `timestamps` parses what `rfc3339` writes.
"""

import time
from typing import NamedTuple


class Now(NamedTuple):
    """One reading of both clocks. Windows use `mono_ms`; records, `time` matchers use `wall_ms`."""

    wall_ms: int
    """milliseconds since 1970-01-01T00:00:00Z"""
    mono_ms: int
    """milliseconds of CLOCK_MONOTONIC, which all processes of a machine share"""


def now() -> Now:
    """Reads both clocks."""
    return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


def rfc3339(wall_ms: int) -> str:
    """Formats wall-clock milliseconds as RFC 3339 in UTC, as every timestamp of the Pack is."""
    seconds, millis = divmod(wall_ms, 1000)
    year, month, day, hour, minute, second = time.gmtime(seconds)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"


class SystemClock:
    """Both clocks as the kernel asks them (`kernel.observing.Clock`)."""

    def now_iso(self) -> str:
        """Returns the time of day."""
        return rfc3339(now().wall_ms)

    def mono_ms(self) -> float:
        """Returns milliseconds of the monotonic clock."""
        return time.monotonic_ns() / 1_000_000
