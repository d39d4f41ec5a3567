"""Lengths of time as people type them: 90s, 10m, 2h, 1d."""

import re

from subluminal.errors import UsageError

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds_in(text: str, option: str) -> int:
    """Reads a length of time, at least a second."""
    found = re.fullmatch(r"([1-9]\d{0,6})([smhd])", text)
    if found is None:
        raise UsageError(f"`{option} {text}` is no length of time", hint="such as 90s, 10m, 2h, 1d")
    return int(found[1]) * _UNITS_MS[found[2]]


def told(ms: int) -> str:
    """A length of time in its largest whole unit."""
    for unit, size in reversed(_UNITS_MS.items()):
        if ms >= size and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"
