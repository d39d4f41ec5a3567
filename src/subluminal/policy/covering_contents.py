"""Compares what two matches say about the arguments of a call: texts, classes of data, numbers.

For lint and diff, as `policy.covering`: True is proven, False means only that no proof was found.
"""

from subluminal.contracts.bundle import NumericRange, TextMatch
from subluminal.contracts.vocabulary import DataClass
from subluminal.policy.contents import data_classes
from subluminal.policy.predicates import is_number


def covers_text(wide: TextMatch | None, narrow: TextMatch | None) -> bool:
    """Whether `wide` matches all texts that `narrow` matches."""
    if wide is None or narrow is None:
        return wide is None
    sought, given = _folded(wide.any_of), _folded(narrow.any_of)
    if sought and not (given and all(any(part in word for part in sought) for word in given)):
        return False
    # What contains a text also contains every part of it.
    excluded = _folded(narrow.none_of)
    if not all(any(part in word for part in excluded) for word in _folded(wide.none_of)):
        return False
    return wide.regex is None or wide.regex == narrow.regex


def contradicts_itself(text: TextMatch) -> bool:
    """Whether every text that one value must have contains a text that no value may have."""
    excluded = _folded(text.none_of)
    return bool(text.any_of) and all(
        any(part in word for part in excluded) for word in _folded(text.any_of)
    )


def _folded(words: list[str]) -> list[str]:
    return [word.casefold() for word in words]


def covers_data(wide: list[DataClass], narrow: list[DataClass]) -> bool:
    """Whether `wide` matches all data that `narrow` matches. An empty list asks nothing."""
    return not wide or (bool(narrow) and data_classes(narrow) <= data_classes(wide))


def in_range(value: object, bounds: NumericRange) -> bool:
    """Whether a value is a number within bounds."""
    if not is_number(value):
        return False
    return covers_range(bounds, NumericRange(min=value, max=value))  # type: ignore[arg-type]


def covers_range(wide: NumericRange, narrow: NumericRange) -> bool:
    """Whether every number within `narrow` is within `wide`."""
    return _is_above(_low(narrow), _low(wide)) and _is_above(_high(narrow), _high(wide))


_Bound = tuple[float, bool] | None
"""A bound, mirrored if it is an upper one, and whether it excludes itself; None without one."""


def _low(bounds: NumericRange) -> _Bound:
    return _strictest((bounds.min, False), (bounds.gt, True))


def _high(bounds: NumericRange) -> _Bound:
    mirrored = [None if each is None else -each for each in (bounds.max, bounds.lt)]
    return _strictest((mirrored[0], False), (mirrored[1], True))


def _strictest(closed: tuple[float | None, bool], opened: tuple[float | None, bool]) -> _Bound:
    given = [(number, is_open) for number, is_open in (closed, opened) if number is not None]
    return max(given, default=None)


def _is_above(inner: _Bound, outer: _Bound) -> bool:
    """Whether an inner bound excludes at least what an outer one excludes."""
    return outer is None or (inner is not None and inner >= outer)
