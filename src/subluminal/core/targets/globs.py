"""Resolves globs in words: the names that they match now."""

import os
import re

from subluminal.core.targets.words import GLOB, MAX_WORDS, Char, Chars, Word, has_glob

_MAX_ENTRIES = 2_000
"""Most entries of a directory in which a glob is resolved."""
_MAX_STARS = 4
"""Most stars in one name. Matching may take time that grows with their number."""


def resolve_globs(word: Word, directories: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Returns the names that globs match now, as bash sorts them; None if they cannot be told."""
    found: list[str] = []
    for chars in word.patterns:
        if not has_glob(chars):
            found.append(_text(chars))
            continue
        is_absolute = chars[0].char == "/"
        if not is_absolute and (directories is None or len(directories) != 1):
            return None
        names = _matches(chars, "" if is_absolute or directories is None else directories[0])
        if names is None:
            return None
        found += names or [_text(chars)]
    return tuple(found) if len(found) <= MAX_WORDS else None


def _text(chars: Chars) -> str:
    return "".join(char for char, _ in chars)


def _matches(chars: Chars, directory: str) -> list[str] | None:
    parts = _parts(chars)
    found = [""]
    after_glob = False
    for number, part in enumerate(parts):
        end = "" if number == len(parts) - 1 else "/"
        if has_glob(part):
            expanded = _expanded(found, part, end, directory)
            if expanded is None:
                return None
            found, after_glob = expanded, True
        else:
            found = [prefix + _text(part) + end for prefix in found]
            if after_glob:
                found = [path for path in found if os.path.lexists(_in(directory, path))]
    return sorted(found)


def _parts(chars: Chars) -> list[Chars]:
    parts: list[list[Char]] = [[]]
    for each in chars:
        if each.char == "/":
            parts.append([])
        else:
            parts[-1].append(each)
    return [tuple(part) for part in parts]


def _expanded(prefixes: list[str], part: Chars, end: str, directory: str) -> list[str] | None:
    pattern = _pattern(part)
    if pattern is None:
        return None
    found: list[str] = []
    for prefix in prefixes:
        names = _entries(_in(directory, prefix) or "/")
        if names is None:
            return None
        found += [
            prefix + name + end
            for name in names
            if pattern.fullmatch(name)
            and (name[0] != "." or part[0].char == ".")
            and (not end or os.path.isdir(_in(directory, prefix + name)))
        ]
        if len(found) > MAX_WORDS:
            return None
    return found


def _in(directory: str, path: str) -> str:
    return path if path.startswith("/") or not directory else f"{directory}/{path}"


def _entries(directory: str) -> list[str] | None:
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return names if len(names) <= _MAX_ENTRIES else None


def _pattern(chars: Chars) -> "re.Pattern[str] | None":
    """Translates one part of a glob; None if it has a set, whose meaning depends on the locale."""
    out: list[str] = []
    for char, quoted in chars:
        if quoted or char not in GLOB:
            out.append(re.escape(char))
        elif char == "[":
            return None
        elif char == "?":
            out.append(".")
        elif out[-1:] != [".*"]:
            out.append(".*")
    return None if out.count(".*") > _MAX_STARS else re.compile("".join(out), re.DOTALL)
