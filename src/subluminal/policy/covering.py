"""Compares two matches: does one cover the other, can one call meet both? For lint and diff.

Conservative: True is proven, False means only that no proof was found. Pure.
"""

from fnmatch import fnmatchcase
from typing import Any

from subluminal.contracts.bundle import (
    ArgsMatch,
    Match,
    NameMatch,
    NumericRange,
    PathMatch,
    TaintMatch,
    TargetsMatch,
    TimeMatch,
)
from subluminal.contracts.vocabulary import TAINT_RANK
from subluminal.policy.covering_agents import covers_agents, disjoint_agents
from subluminal.policy.covering_contents import covers_data, covers_range, covers_text, in_range
from subluminal.policy.predicates import same_value

_SPECIAL = frozenset("*?[")
_EVERY_REGEX = frozenset({"", ".*", "^", "^.*", "^.*$", ".*$"})
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def covers(wide: Match, narrow: Match) -> bool:
    """Whether `wide` matches every call that `narrow` matches. Assumes equal tags.

    If both test targets, it also assumes that both rules allow, or neither does.
    """
    return (
        covers_names(wide.server_name, narrow.server_name)
        and covers_names(wide.tool_name, narrow.tool_name)
        and covers_classes(wide.risk_class, narrow.risk_class)
        and covers_args(wide.args, narrow.args)
        and covers_time(wide.time, narrow.time)
        and covers_targets(wide.targets, narrow.targets)
        and covers_taint(wide.taint, narrow.taint)
        and covers_agents(wide, narrow)
        and covers_args(wide.context, narrow.context)
        and covers_text(wide.text, narrow.text)
        and covers_data(wide.data_any, narrow.data_any)
    )


def matches_every_name(names: NameMatch | None) -> bool:
    """Whether a name match matches every name."""
    if names is None or not (names.glob or names.regex):
        return True
    return any(not glob.strip("*") for glob in names.glob) or any(
        regex in _EVERY_REGEX for regex in names.regex
    )


def covers_names(wide: NameMatch | None, narrow: NameMatch | None) -> bool:
    """Whether `wide` matches every name that `narrow` matches."""
    if wide is None or matches_every_name(wide):
        return True
    if narrow is None or matches_every_name(narrow):
        return False
    return all(regex in wide.regex for regex in narrow.regex) and all(
        any(covers_glob(outer, inner) for outer in wide.glob) for inner in narrow.glob
    )


def covers_glob(outer: str, inner: str) -> bool:
    """Whether `outer` matches every name that `inner` matches."""
    if outer == inner:
        return True
    if is_literal(inner):
        return glob_matches(outer, inner)
    core = outer.strip("*")
    if not is_literal(core):
        return False
    if outer == core + "*":
        return head_of(inner).startswith(core)
    if outer == "*" + core:
        return _tail(inner).endswith(core)
    return outer == f"*{core}*" and (core in head_of(inner) or core in _tail(inner))


def is_literal(glob: str) -> bool:
    """Whether a glob matches one name only."""
    return not _SPECIAL.intersection(glob)


def glob_matches(glob: str, name: str) -> bool:
    """Whether a glob matches a name."""
    return fnmatchcase(name, glob)


def head_of(glob: str) -> str:
    """Returns the text with which every match of a glob begins."""
    for position, char in enumerate(glob):
        if char in _SPECIAL:
            return glob[:position]
    return glob


def _tail(glob: str) -> str:
    """Returns the text with which every match of a glob ends; empty if the glob has a set."""
    if "[" in glob:
        return ""
    return glob[max(glob.rfind(mark) for mark in "*?") + 1 :]


def disjoint(left: Match, right: Match) -> bool:
    """Whether no call can match both, judged by names and by who acts."""
    return (
        disjoint_names(left.server_name, right.server_name)
        or disjoint_names(left.tool_name, right.tool_name)
        or disjoint_agents(left, right)
    )


def disjoint_names(left: NameMatch | None, right: NameMatch | None) -> bool:
    """Whether no name can match both. Regexes are not examined."""
    if left is None or right is None or left.regex or right.regex:
        return False
    if not left.glob or not right.glob:
        return False
    return all(_disjoint_globs(one, other) for one in left.glob for other in right.glob)


def _disjoint_globs(one: str, other: str) -> bool:
    if is_literal(one):
        return not glob_matches(other, one)
    if is_literal(other):
        return not glob_matches(one, other)
    heads, tails = (head_of(one), head_of(other)), (_tail(one), _tail(other))
    short_head, long_head = sorted(heads, key=len)
    short_tail, long_tail = sorted(tails, key=len)
    return not (long_head.startswith(short_head) and long_tail.endswith(short_tail))


def covers_classes(wide: list[str], narrow: list[str]) -> bool:
    """Whether a call with a class of `narrow` has one of `wide`. An empty list demands no class."""
    return not wide or (bool(narrow) and set(narrow) <= set(wide))


def covers_args(wide: ArgsMatch | None, narrow: ArgsMatch | None) -> bool:
    """Whether the predicates of `narrow` imply those of `wide`."""
    if wide is None:
        return True
    inner = narrow or ArgsMatch()
    named = {*inner.has_keys, *inner.key_equals, *inner.key_in, *inner.numeric_range}
    return (
        named.issuperset(wide.has_keys)
        and all(_implies_in(inner, key, [value]) for key, value in wide.key_equals.items())
        and all(_implies_in(inner, key, values) for key, values in wide.key_in.items())
        and all(_implies_range(inner, key, bounds) for key, bounds in wide.numeric_range.items())
        and all(_implies_other(inner, key, value) for key, value in wide.key_not_equals.items())
    )


def possible_values(args: ArgsMatch, key: str) -> list[Any] | None:
    """Returns the values that a key may have; None if the predicates list none."""
    if key in args.key_equals:
        return [args.key_equals[key]]
    return args.key_in.get(key)


def _implies_in(args: ArgsMatch, key: str, values: list[Any]) -> bool:
    possible = possible_values(args, key)
    return possible is not None and all(among(value, values) for value in possible)


def among(value: Any, values: list[Any]) -> bool:
    """Whether a value equals one of several, as predicates compare."""
    return any(same_value(value, each) for each in values)


def _implies_range(args: ArgsMatch, key: str, bounds: NumericRange) -> bool:
    possible = possible_values(args, key)
    if possible is not None:
        return all(in_range(value, bounds) for value in possible)
    inner = args.numeric_range.get(key)
    return inner is not None and covers_range(bounds, inner)


def _implies_other(args: ArgsMatch, key: str, value: Any) -> bool:
    """Whether a key is missing or has another value."""
    if key in args.key_not_equals and same_value(args.key_not_equals[key], value):
        return True
    possible = possible_values(args, key)
    if possible is not None:
        return not among(value, possible)
    return key in args.numeric_range and not in_range(value, args.numeric_range[key])


def covers_time(wide: TimeMatch | None, narrow: TimeMatch | None) -> bool:
    """Whether `wide` includes every hour of the week that `narrow` includes."""
    return _hours(wide) >= _hours(narrow)


def covers_targets(wide: TargetsMatch | None, narrow: TargetsMatch | None) -> bool:
    """Whether `wide` matches all targets that `narrow` matches, in rules of the same kind."""
    if wide is None or narrow is None:
        return wide is None
    return (
        wide.opaque == narrow.opaque
        and all(
            (outer is None) == (inner is None)
            for outer, inner in (
                (wide.program, narrow.program),
                (wide.argv, narrow.argv),
                (wide.path, narrow.path),
                (wide.host, narrow.host),
                (wide.access or None, narrow.access or None),
            )
        )
        and _covers_fields(wide, narrow)
    )


def covers_taint(wide: TaintMatch | None, narrow: TaintMatch | None) -> bool:
    """Whether `wide` matches every level that `narrow` matches."""
    if wide is None or narrow is None:
        return wide is None
    return TAINT_RANK[wide.below] <= TAINT_RANK[narrow.below]


def _covers_fields(wide: TargetsMatch, narrow: TargetsMatch) -> bool:
    """Compares two matches that give the same fields."""
    return (
        covers_names(wide.program, narrow.program)
        and covers_names(wide.argv, narrow.argv)
        and covers_names(wide.host, narrow.host)
        and set(wide.access) >= set(narrow.access)
        and (wide.path is None or narrow.path is None or _covers_path(wide.path, narrow.path))
    )


def _covers_path(wide: PathMatch, narrow: PathMatch) -> bool:
    inside = not wide.inside or (bool(narrow.inside) and set(narrow.inside) <= set(wide.inside))
    return (
        inside
        and set(wide.outside) <= set(narrow.outside)
        and covers_names(
            NameMatch(glob=wide.glob, regex=wide.regex),
            NameMatch(glob=narrow.glob, regex=narrow.regex),
        )
    )


def _hours(time: TimeMatch | None) -> set[tuple[str, int]]:
    days = (time and time.weekdays) or _DAYS
    pairs = (time and time.utc_hours) or [[0, 24]]
    hours = {hour for start, end in pairs for hour in _span(start, end)}
    return {(day, hour) for day in days for hour in hours}


def _span(start: int, end: int) -> list[int]:
    if start <= end:
        return list(range(start, end))
    return [*range(start, 24), *range(end)]
