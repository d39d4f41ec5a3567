"""Durations and sizes as people type and read them: 90s, 10m, 2h, 1d; 1.5 MiB."""

import re

from subluminal.errors import UsageError

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def milliseconds_in(text: str, option: str) -> int:
    """Parses a duration of at least one second; `option` is named in the error."""
    found = re.fullmatch(r"([1-9]\d{0,6})([smhd])", text)
    if found is None:
        raise UsageError(
            f"`{option} {text}` is not a duration", hint="write it as 30s, 10m, 2h or 1d"
        )
    return int(found[1]) * _UNITS_MS[found[2]]


def duration(ms: int) -> str:
    """Formats a duration in the largest unit that divides it: 3600000 is `1h`."""
    for unit, size_ms in reversed(_UNITS_MS.items()):
        if ms >= size_ms and ms % size_ms == 0:
            return f"{ms // size_ms}{unit}"
    return f"{ms}ms"


def size(count: int) -> str:
    """Formats a number of bytes: 1536 is `1.5 KiB`."""
    for limit, unit in _SIZES:
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count} B"
