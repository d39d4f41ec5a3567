"""Checks of numbers and ranges, which several parts of a bundle share."""

import math
from collections.abc import Iterator
from typing import Any

from subluminal.contracts.limits import MAX_AMOUNT
from subluminal.contracts.shape import Misfit, Path


def amount_misfits(value: int | None, least: int, path: Path) -> Iterator[Misfit]:
    """Checks a count or a duration. It may be missing."""
    if value is None:
        return
    if value < least:
        yield Misfit(path, f"must be at least {least}, got {value}")
    elif value > MAX_AMOUNT:
        yield Misfit(path, f"must be at most {MAX_AMOUNT}")


def range_misfits(
    low: float | None, high: float | None, names: tuple[str, str], path: Path
) -> Iterator[Misfit]:
    """Checks the bounds of a range. One of them may be missing."""
    if low is None and high is None:
        yield Misfit(path, f"needs `{names[0]}` or `{names[1]}`")
    yield from not_finite(low, (*path, names[0]))
    yield from not_finite(high, (*path, names[1]))
    if low is not None and high is not None and low > high:
        yield Misfit(path, f"`{names[0]}` {low} is greater than `{names[1]}` {high}")


def not_finite(value: Any, path: Path) -> Iterator[Misfit]:
    """Finds NaN and Infinity. JSON cannot contain them, but a bundle built in code can."""
    if isinstance(value, float) and not math.isfinite(value):
        yield Misfit(path, "must be a finite number")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from not_finite(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from not_finite(item, (*path, key))
