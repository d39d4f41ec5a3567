"""Finds the line of a key in TOML text. tomllib tells values, not places.

It reads headers and `key =` lines of text that already parsed, so it may be simple: a key inside
an inline table or a multi-line value is given the line where that value begins.
"""

import re

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_NAME = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"^\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+)""")


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """Returns the line of the longest beginning of `path` that has one; 0 if none has."""
    places = _places(text)
    for length in range(len(path), 0, -1):
        line = places.get(path[:length])
        if line is not None:
            return line
    return 0


def _places(text: str) -> dict[tuple[str | int, ...], int]:
    places: dict[tuple[str | int, ...], int] = {}
    counts: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(text.split("\n"), start=1):
        header = _HEADER.match(line)
        if header:
            table = _resolve(_parts(header.group(2)), counts)
            if header.group(1) == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                table = (*table, index)
            places.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            places.setdefault(table + _parts(key.group(1)), number)
    return places


def _parts(dotted: str) -> tuple[str | int, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))


def _resolve(
    names: tuple[str | int, ...], counts: dict[tuple[str | int, ...], int]
) -> tuple[str | int, ...]:
    """A header below an array of tables means that array's last element."""
    path: tuple[str | int, ...] = ()
    for position, name in enumerate(names):
        path = (*path, name)
        if path in counts and position < len(names) - 1:
            path = (*path, counts[path] - 1)
    return path
