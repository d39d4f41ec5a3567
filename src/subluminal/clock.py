"""Reads the wall clock and the monotonic clock together, and writes timestamps.

Deciding code takes `now` as an argument. `timestamps` reads what `rfc3339` writes.
"""

import time
from typing import NamedTuple


class Now(NamedTuple):
    """One reading of both clocks. Windows use `mono_ms`; `time` matchers and records `wall_ms`."""

    wall_ms: int
    mono_ms: int


def now() -> Now:
    """Reads both clocks. CLOCK_MONOTONIC is one clock for all processes of a machine."""
    return Now(time.time_ns() // 1_000_000, time.monotonic_ns() // 1_000_000)


def rfc3339(wall_ms: int) -> str:
    """Writes a wall clock reading as a timestamp of the Pack: UTC, with milliseconds."""
    seconds, millis = divmod(wall_ms, 1000)
    year, month, day, hour, minute, second = time.gmtime(seconds)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"
