"""What is wrong with a rule's match: patterns, argument predicates, times (Pack 2.4)."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from subluminal.contracts.bundle import ArgsMatch, Match, NameMatch, TimeMatch
from subluminal.contracts.shape import Misfit, Path
from subluminal.policy.patterns import glob_problem, regex_problem


def match_misfits(match: Match) -> Iterator[Misfit]:
    """Returns what is wrong with a match; paths begin at the rule."""
    yield from _names(match.server_name, ("match", "server_name"))
    yield from _names(match.tool_name, ("match", "tool_name"))
    for index, name in enumerate(match.risk_class):
        if not name.strip():
            yield Misfit(("match", "risk_class", index), "must not be empty")
    if match.args is not None:
        yield from _args(match.args, ("match", "args"))
    if match.time is not None:
        yield from _time(match.time, ("match", "time"))


def _names(names: NameMatch | None, path: Path) -> Iterator[Misfit]:
    if names is None:
        return
    yield from _patterns(names.glob, glob_problem, "glob", path)
    yield from _patterns(names.regex, regex_problem, "regex", path)


def _patterns(
    patterns: list[str], problem_of: Callable[[str], str | None], name: str, path: Path
) -> Iterator[Misfit]:
    for index, pattern in enumerate(patterns):
        problem = problem_of(pattern)
        if problem is not None:
            shown = f" `{pattern[:40]}`" if pattern else ""
            yield Misfit((*path, name, index), f"invalid {name}{shown}: {problem}")


def _args(args: ArgsMatch, path: Path) -> Iterator[Misfit]:
    for key, value in args.key_equals.items():
        yield from not_finite(value, (*path, "key_equals", key))
    for key, values in args.key_in.items():
        if not values:
            yield Misfit((*path, "key_in", key), "an empty list matches nothing")
        yield from not_finite(values, (*path, "key_in", key))
    for key, bounds in args.numeric_range.items():
        where = (*path, "numeric_range", key)
        yield from range_misfits(bounds.min, bounds.max, ("min", "max"), where)


def range_misfits(
    low: float | None, high: float | None, names: tuple[str, str], path: Path
) -> Iterator[Misfit]:
    """Checks the two ends of a range, of which one may be open."""
    if low is None and high is None:
        yield Misfit(path, f"needs `{names[0]}` or `{names[1]}`")
    yield from not_finite(low, (*path, names[0]))
    yield from not_finite(high, (*path, names[1]))
    if low is not None and high is not None and low > high:
        yield Misfit(path, f"`{names[0]}` {low} is above `{names[1]}` {high}")


def not_finite(value: Any, path: Path) -> Iterator[Misfit]:
    """Finds numbers that JSON has not. Text cannot hold them; a bundle built in code can."""
    if isinstance(value, float) and not math.isfinite(value):
        yield Misfit(path, "must be a finite number")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from not_finite(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from not_finite(item, (*path, key))


def _time(time: TimeMatch, path: Path) -> Iterator[Misfit]:
    for index, pair in enumerate(time.utc_hours):
        problem = _hours_problem(pair)
        if problem is not None:
            hint = "write `[9, 17]` for 09:00 to 17:00, `[22, 6]` for a night"
            yield Misfit((*path, "utc_hours", index), problem, hint)


def _hours_problem(pair: list[int]) -> str | None:
    if len(pair) != 2:
        return f"expected two hours, got {len(pair)}"
    start, end = pair
    if not 0 <= start <= 23 or not 0 <= end <= 24:
        return "hours go from 0 to 24"
    if start == end:
        return f"from {start} to {end} is no time at all"
    return None
