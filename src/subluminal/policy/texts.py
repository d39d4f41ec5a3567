"""Globs and regexes for the texts of targets: words of commands, paths, hosts (linear-patterns).

Unlike a name, such a text may be long and have several lines, and globs with several `*` are usual.
So a glob whose only special character is `*` is matched by its parts, without RE2. `.` of a regex
matches line ends too.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from subluminal.policy.patterns import compile_names, regex_finders

if TYPE_CHECKING:  # a shim matches snapshots, and never loads the structs of bundles
    from subluminal.contracts.bundle import NameMatch


class TextPatterns(NamedTuple):
    """A compiled NameMatch for texts, as a snapshot contains it."""

    any: bool
    exact: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    parts: tuple[tuple[str, ...], ...] = ()
    """globs with several `*`: the texts between the stars, the first and the last at the ends"""
    re2: tuple[str, ...] = ()


def compile_texts(match: "NameMatch") -> TextPatterns:
    """Sorts patterns by how they are matched. Without any pattern, every text matches."""
    from subluminal.contracts.bundle import NameMatch

    parts = {_parts(glob) for glob in match.glob if _is_by_parts(glob)}
    others = NameMatch(
        glob=[glob for glob in match.glob if not _is_by_parts(glob)], regex=match.regex
    )
    if parts and not (others.glob or others.regex):
        return TextPatterns(any=False, parts=tuple(sorted(parts)))
    names = compile_names(others)
    if names.any:
        return TextPatterns(any=True)
    return TextPatterns(
        False, names.exact, names.prefix, names.suffix, tuple(sorted(parts)), names.re2
    )


def _is_by_parts(glob: str) -> bool:
    inner = glob[1:] if glob.startswith("*") else glob[:-1] if glob.endswith("*") else glob
    return "*" in inner and bool(glob.strip("*")) and not {"?", "["}.intersection(glob)


def _parts(glob: str) -> tuple[str, ...]:
    first, *middle, last = glob.split("*")
    return (first, *(part for part in middle if part), last)


def text_test(spec: dict[str, Any]) -> Callable[[str], bool]:
    """Returns the test of a text from patterns of a snapshot."""
    patterns = TextPatterns(**spec)
    if patterns.any:
        return lambda _text: True
    exact = frozenset(patterns.exact)
    prefix, suffix = tuple(patterns.prefix), tuple(patterns.suffix)
    finders = regex_finders([f"(?s:{pattern})" for pattern in patterns.re2])

    def holds(text: str) -> bool:
        return (
            text in exact
            or text.startswith(prefix)
            or text.endswith(suffix)
            or any(_has_parts(text, parts) for parts in patterns.parts)
            or any(find(text) for _, find in finders)
        )

    return holds


def _has_parts(text: str, parts: tuple[str, ...]) -> bool:
    """Whether a text has these parts in order. The first place of each part is the best one."""
    first, *middle, last = parts
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for part in middle:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return at <= len(text) - len(last)
