"""Globs and regexes for names. All are matched in linear time (linear-patterns).

A glob becomes the simplest of: an exact name, prefix*, *suffix, an anchored RE2 pattern. RE2 is
loaded only if a policy needs it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.contracts.limits import MAX_PATTERN_CHARS

if TYPE_CHECKING:  # a shim matches snapshots, and never loads the structs of bundles
    from subluminal.contracts.bundle import NameMatch

_SPECIAL = frozenset("*?[")
_RE2_META = frozenset("\\.+*?()|[]{}^$")
# Memory in bytes that one set of patterns, or one pattern, may use. Most of it is a cache, which
# names that an agent makes up would fill.
_RE2_MAX_MEM = 8 << 20
# The same for a pattern that was accepted by an earlier version, without a bound on its cost.
_RE2_MAX_MEM_ALONE = 256 << 20

Finder = Callable[[str], Sequence[int] | None]
"""Returns the numbers of the patterns in a set that match a name."""


class NamePatterns(NamedTuple):
    """A compiled NameMatch, as a snapshot contains it."""

    any: bool
    exact: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    re2: tuple[str, ...] = ()


def compile_names(match: "NameMatch | None") -> NamePatterns:
    """Sorts patterns by how they are matched. Without any pattern, every name matches."""
    if match is None or not (match.glob or match.regex):
        return NamePatterns(any=True)
    return glob_patterns(match.glob, match.regex)


def glob_patterns(globs: Iterable[str], regex: Iterable[str] = ()) -> NamePatterns:
    """Sorts globs and regexes, of which there is at least one, by how they are matched."""
    exact: set[str] = set()
    prefix: set[str] = set()
    suffix: set[str] = set()
    regexes: set[str] = set(regex)
    for pattern in globs:
        head, tail = pattern[:-1], pattern[1:]
        if not _SPECIAL.intersection(pattern):
            exact.add(pattern)
        elif pattern.endswith("*") and not _SPECIAL.intersection(head):
            prefix.add(head)
        elif pattern.startswith("*") and not _SPECIAL.intersection(tail):
            suffix.add(tail)
        else:
            regexes.add(glob_to_re2(pattern))
    if "" in prefix or "" in suffix:  # `*` alone
        return NamePatterns(any=True)
    return NamePatterns(
        any=False,
        exact=tuple(sorted(exact)),
        prefix=tuple(sorted(prefix)),
        suffix=tuple(sorted(suffix)),
        re2=tuple(sorted(regexes)),
    )


def glob_to_re2(pattern: str) -> str:
    """Translates a valid glob to an RE2 pattern, anchored except where the glob has a `*`."""
    head, tail = "" if pattern.startswith("*") else "^", "" if pattern.endswith("*") else "$"
    middle = pattern.strip("*")
    out: list[str] = []
    position = 0
    while position < len(middle):
        char = middle[position]
        if char == "[":
            end = _class_end(middle, position)
            out.append(_class(middle[position + 1 : end]))
            position = end
        elif char == "*":
            out.append(".*")
        elif char == "?":
            out.append(".")
        else:
            out.append("\\" + char if char in _RE2_META else char)
        position += 1
    return f"{head}(?s:{''.join(out)}){tail}"


def _class(body: str) -> str:
    negated = body.startswith("!")
    members = body[1:] if negated else body
    escaped = "".join("\\" + char if char in "\\[]^&~" else char for char in members)
    return f"[{'^' if negated else ''}{escaped}]"


def _class_end(pattern: str, start: int) -> int:
    """Returns the index of the `]` that closes the set opened at `start`; -1 if there is none."""
    first = start + 2 if pattern[start + 1 : start + 2] == "!" else start + 1
    return pattern.find("]", first + 1)  # a `]` right after the `[` is a member


def glob_problem(pattern: str) -> str | None:
    """Returns why a glob is refused; None if it is valid."""
    if not pattern:
        return "an empty glob matches no name"
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"longer than {MAX_PATTERN_CHARS} characters"
    position = pattern.find("[")
    while position >= 0:
        end = _class_end(pattern, position)
        if end < 0:
            return "`[` without a closing `]`"
        position = pattern.find("[", end)
    return _re2_problem(glob_to_re2(pattern)) if "[" in pattern else None


_NOT_LINEAR = (
    ("(?=", "a lookahead"),
    ("(?!", "a lookahead"),
    ("(?<=", "a lookbehind"),
    ("(?<!", "a lookbehind"),
    ("(?>", "an atomic group"),
    ("(?(", "a conditional"),
    ("(?P=", "a backreference"),
)


def regex_problem(pattern: str) -> str | None:
    """Returns why a regex is refused; None if it is valid."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"longer than {MAX_PATTERN_CHARS} characters"
    return _re2_problem(pattern)


def _re2_problem(pattern: str) -> str | None:
    import re2  # the C++ engine, loaded only if a pattern has to be checked or matched

    try:
        re2.compile(pattern, _options(re2))
    except re2.error as error:
        for mark, name in _NOT_LINEAR:
            if mark in pattern:
                return f"{name} `{mark}` cannot be matched in linear time"
        reason = error.args[0]
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return text[:1].lower() + text[1:]
    return None


def program_size(pattern: str) -> int:
    """Returns the number of instructions that RE2 needs for a valid pattern."""
    import re2

    # RE2 does not count a literal beginning, which it searches for by other means.
    return int(re2.compile(pattern, _options(re2)).programsize) + len(pattern.encode())


def _options(re2: Any, max_mem: int | None = None) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = max_mem or _RE2_MAX_MEM
    return options


class NameIndex:
    """Finds the rules that match a name. Rules that do not match cost nothing."""

    def __init__(self, patterns: Sequence[NamePatterns]) -> None:
        self._any = frozenset(i for i, each in enumerate(patterns) if each.any)
        self._exact = _table((word, i) for i, each in enumerate(patterns) for word in each.exact)
        self._prefixes = _by_length(patterns, "prefix")
        self._suffixes = _by_length(patterns, "suffix")
        owners = [(word, i) for i, each in enumerate(patterns) for word in each.re2]
        self._owners = [index for _, index in owners]
        self._finders = regex_finders([word for word, _ in owners])

    def match(self, name: str) -> frozenset[int] | set[int]:
        """Returns the indexes of the rules whose patterns match the name."""
        found: list[int] = list(self._exact.get(name, ()))
        for length, table in self._prefixes:
            found += table.get(name[:length], ())
        for length, table in self._suffixes:
            found += table.get(name[-length:], ())
        for offset, find in self._finders:
            found += [self._owners[offset + hit] for hit in find(name) or ()]
        return self._any.union(found) if found else self._any


def _table(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    table: dict[str, list[int]] = {}
    for word, index in pairs:
        table.setdefault(word, []).append(index)
    return table


def _by_length(
    patterns: Sequence[NamePatterns], part: str
) -> list[tuple[int, dict[str, list[int]]]]:
    lengths: dict[int, dict[str, list[int]]] = {}
    for index, each in enumerate(patterns):
        for word in getattr(each, part):
            lengths.setdefault(len(word), {}).setdefault(word, []).append(index)
    return sorted(lengths.items())


def regex_finders(patterns: list[str]) -> list[tuple[int, Finder]]:
    """Compiles regexes to sets, each with the number of its first pattern."""
    return _finders(patterns) if patterns else []


def _finders(patterns: list[str], offset: int = 0) -> list[tuple[int, Finder]]:
    """Compiles all patterns to one set. A set too large for RE2 is halved, down to one pattern."""
    import re2

    found = re2.Set.SearchSet(_options(re2))
    try:
        for pattern in patterns:
            found.Add(pattern)
        found.Compile()
    except re2.error:
        if len(patterns) == 1:
            search = re2.compile(patterns[0], _options(re2, _RE2_MAX_MEM_ALONE)).search
            return [(offset, lambda name: (0,) if search(name) else None)]
        half = len(patterns) // 2
        return _finders(patterns[:half], offset) + _finders(patterns[half:], offset + half)
    return [(offset, found.Match)]
