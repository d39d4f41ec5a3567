"""What a rule's match asks of a call beyond its names: arguments, time, risk class (Pack 2.4).

Each builder returns a function, or None where nothing is asked. Predicates look at top-level keys.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

ArgsPredicate = Callable[[dict[str, Any]], bool]
TimePredicate = Callable[[int], bool]

_NUMBERS = frozenset({int, float, Decimal})
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOUR_MS = 3_600_000
_MISSING = object()


def args_predicate(spec: dict[str, Any] | None) -> ArgsPredicate | None:
    """Builds the test of a call's arguments from a snapshot's `match.args`."""
    if spec is None:
        return None
    tests: list[ArgsPredicate] = []
    tests += [_has_key(key) for key in spec["has_keys"]]
    tests += [_equals(key, value) for key, value in spec["key_equals"].items()]
    tests += [_is_in(key, values) for key, values in spec["key_in"].items()]
    tests += [_in_range(key, bounds) for key, bounds in spec["numeric_range"].items()]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:  # as most are; a generator costs more than both tests
        first, second = tests
        return lambda args: first(args) and second(args)
    return lambda args: all(test(args) for test in tests)


def time_predicate(spec: dict[str, Any] | None) -> TimePredicate | None:
    """Builds the test of the wall clock from a snapshot's `match.time`."""
    if spec is None or not (spec["utc_hours"] or spec["weekdays"]):
        return None
    hours = [(start, end) for start, end in spec["utc_hours"]]
    days = frozenset(_WEEKDAYS.index(day) for day in spec["weekdays"])

    def holds(wall_ms: int) -> bool:
        hour = wall_ms // _HOUR_MS
        weekday = (hour // 24 + 3) % 7  # the epoch was a Thursday
        if days and weekday not in days:
            return False
        return not hours or any(_hour_in(hour % 24, start, end) for start, end in hours)

    return holds


def _hour_in(hour: int, start: int, end: int) -> bool:
    if start <= end:
        return start <= hour < end
    return hour >= start or hour < end


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number; true and false are not."""
    return type(value) in _NUMBERS


def _as_read(number: Any) -> Any:
    """A literal that a double cannot hold, as the upstream will read it.

    0.1000000000000000000001 is 0.1 to nearly every tool, so it must be 0.1 to a rule about 0.1.
    """
    return float(number) if type(number) is Decimal else number


def same_value(left: Any, right: Any) -> bool:
    """JSON equality: 1 is 1.0, never true; "1" is never 1 (rule-evaluation)."""
    if type(left) in _NUMBERS:
        return type(right) in _NUMBERS and _as_read(left) == _as_read(right)
    if type(left) is not type(right):
        return False
    if type(left) is list:
        return len(left) == len(right) and all(map(same_value, left, right))
    if type(left) is dict:
        return left.keys() == right.keys() and all(same_value(left[k], right[k]) for k in left)
    return bool(left == right)


def _has_key(key: str) -> ArgsPredicate:
    return lambda args: key in args


def _equals(key: str, value: Any) -> ArgsPredicate:
    if isinstance(value, str):  # the common case, and no other type equals a string
        return lambda args: args.get(key) == value
    return lambda args: same_value(args.get(key, _MISSING), value)


def _is_in(key: str, values: list[Any]) -> ArgsPredicate:
    """A list may be long (every repository of a company): words and numbers are looked up."""
    words = frozenset(value for value in values if type(value) is str)
    numbers = frozenset(value for value in values if is_number(value))
    others = [value for value in values if type(value) is not str and not is_number(value)]

    def holds(args: dict[str, Any]) -> bool:
        found = args.get(key, _MISSING)
        if type(found) is str:
            return found in words
        if type(found) in _NUMBERS:
            return _as_read(found) in numbers
        return any(same_value(found, value) for value in others)

    return holds


def _in_range(key: str, bounds: dict[str, Any]) -> ArgsPredicate:
    low, high = bounds["min"], bounds["max"]

    def holds(args: dict[str, Any]) -> bool:
        found = args.get(key)
        if type(found) not in _NUMBERS:
            return False
        found = _as_read(found)
        return (low is None or found >= low) and (high is None or found <= high)

    return holds
