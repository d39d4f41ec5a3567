"""Tests of a call beyond its names, and of a run: arguments, time, selectors (Pack 2.2 and 2.4).

Each builder returns a function, or None if there is nothing to test. Predicates about arguments
look at top-level keys only.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from msgspec import UNSET

from subluminal.contracts.identity import Identity

ArgsPredicate = Callable[[dict[str, Any]], bool]
TimePredicate = Callable[[int], bool]

_NUMBERS = frozenset({int, float, Decimal})
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOUR_MS = 3_600_000
_MISSING = object()


def args_predicate(spec: dict[str, Any] | None) -> ArgsPredicate | None:
    """Builds the test of a call's arguments from `match.args` of a snapshot."""
    if spec is None:
        return None
    tests: list[ArgsPredicate] = []
    tests += [_has_key(key) for key in spec["has_keys"]]
    tests += [_equals(key, value) for key, value in spec["key_equals"].items()]
    tests += [_differs(key, value) for key, value in spec.get("key_not_equals", {}).items()]
    tests += [_is_in(key, values) for key, values in spec["key_in"].items()]
    tests += [_in_range(key, bounds) for key, bounds in spec["numeric_range"].items()]
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:  # the usual number; a generator would cost more than both tests
        first, second = tests
        return lambda args: first(args) and second(args)
    return lambda args: all(test(args) for test in tests)


def time_predicate(spec: dict[str, Any] | None) -> TimePredicate | None:
    """Builds the test of the wall clock from `match.time` of a snapshot."""
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
    """Whether a JSON value is a number. True and false are not."""
    return type(value) in _NUMBERS


def _as_read(number: Any) -> Any:
    """Returns a number as the server will read it: as a double.

    To nearly every tool 0.1000000000000000000001 is 0.1, so it must be 0.1 to a rule about 0.1.
    """
    return float(number) if type(number) is Decimal else number


def same_value(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0, but neither true nor "1" equals 1."""
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
    if isinstance(value, str):  # the usual case; no other type equals a string
        return lambda args: args.get(key) == value
    return lambda args: same_value(args.get(key, _MISSING), value)


def _differs(key: str, value: Any) -> ArgsPredicate:
    equals = _equals(key, value)
    return lambda args: not equals(args)


def _is_in(key: str, values: list[Any]) -> ArgsPredicate:
    """Looks strings and numbers up in sets: a list may name every repository of a company."""
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
    above, below = bounds.get("gt"), bounds.get("lt")
    if above is not None or below is not None:
        inner = _in_range(key, {"min": low, "max": high})
        return lambda args: inner(args) and _is_between(_as_read(args[key]), above, below)

    def holds(args: dict[str, Any]) -> bool:
        found = args.get(key)
        if type(found) not in _NUMBERS:
            return False
        if type(found) is Decimal:
            found = _as_read(found)
        return (low is None or found >= low) and (high is None or found <= high)

    return holds


def _is_between(number: float, above: float | None, below: float | None) -> bool:
    return (above is None or number > above) and (below is None or number < below)


def applies(selectors: dict[str, Any], identity: Identity) -> bool:
    """Whether a policy's selectors match the identity of a run (Pack 2.2).

    All fields must match; one of the values of a field is enough; an empty field matches all.
    """
    return (
        _among(selectors["env"], identity.env.value)
        and _among(selectors["agent_id"], identity.agent_id)
        and _among(selectors["client"], identity.client.value)
        and _workload_fits(selectors["workload"], identity)
    )


def _among(wanted: list[str], actual: object) -> bool:
    return not wanted or actual in wanted


def _workload_fits(wanted: dict[str, Any] | None, identity: Identity) -> bool:
    if wanted is None:
        return True
    workload = identity.workload
    labels = {} if workload.labels is UNSET else workload.labels
    return (
        _among(wanted["namespace"], workload.namespace)
        and _among(wanted["service_account"], workload.service_account)
        and _among(wanted["repo"], workload.repo)
        and _among(wanted["branch"], workload.branch)
        and all(labels.get(key) == value for key, value in wanted["labels"].items())
    )
