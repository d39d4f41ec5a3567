"""Reads one word of a shell line: quotes removed, braces expanded, `~` and globs resolved.

A word is *known* if its value can be told before the line runs. The parser finds the expansions in
a word; the rest is read here, because the parser drops blanks in quoted text.
"""

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_MAX_WORDS = 64
"""Most words that braces or a glob may expand to. More make the word unknown."""
_MAX_ENTRIES = 2_000
"""Most entries of a directory in which a glob is resolved."""

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:=@%+,-]*")
_PLAIN_QUOTED = re.compile(r"'([^']*)'|\"([^\"\\$`]*)\"")
_GLOB = frozenset("*?[")
_ANSI = {
    **{"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r"},
    **{"t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?"},
}
_ANSI_CODE = re.compile(r"([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})")


class Expansion(NamedTuple):
    """An expansion in a word, as offsets in the text of the word."""

    start: int
    end: int
    value: str | None
    """what it expands to; None if that is not known"""


class Word(NamedTuple):
    """A word as read."""

    texts: tuple[str, ...]
    """the words that it becomes: several by braces; as written if it is not known"""
    known: bool = True
    globs: bool = False
    """whether a text contains glob characters that are not quoted; they are escaped by `quoted`"""
    patterns: tuple["Chars", ...] = ()
    """the texts as characters, if they contain globs"""


class Char(NamedTuple):
    """One character of a word, and whether it is quoted."""

    char: str
    quoted: bool


Chars = tuple[Char, ...]


def read_word(text: str, expansions: Sequence[Expansion] = (), *, home: str) -> Word:
    """Reads a word from the text of a line."""
    if not expansions and _PLAIN.fullmatch(text):
        return Word((text,))
    quoted = _PLAIN_QUOTED.fullmatch(text)
    if quoted is not None:
        return Word((quoted[1] or quoted[2] or "",))
    chars = _Lexer(text, expansions).chars()
    if chars is None:
        return Word((text,), known=False)
    alternatives = _braces(chars)
    if alternatives is None:
        return Word((text,), known=False)
    with_home = [_tilde(each, home) for each in alternatives]
    ready = [each for each in with_home if each is not None]
    if len(ready) != len(with_home):
        return Word((text,), known=False)
    # A word that braces leave without a character disappears; one with quotes does not.
    texts = tuple("".join(char for char, _ in each) for each in ready)
    if any(_has_glob(each) for each in ready):
        return Word(texts, globs=True, patterns=tuple(ready))
    if any(not each for each in texts) and not ("'" in text or '"' in text):
        texts = tuple(each for each in texts if each)
    return Word(texts)


def _has_glob(chars: Chars) -> bool:
    return any(char in _GLOB and not quoted for char, quoted in chars)


class _Lexer:
    """Splits the text of one word into characters, quoted or not."""

    def __init__(self, text: str, expansions: Sequence[Expansion]) -> None:
        self._text = text
        self._expansions = {each.start: each for each in expansions}
        self._found: list[Char] = []

    def chars(self) -> Chars | None:
        """Returns the characters; None if the value is not known."""
        at: int | None = 0
        while at is not None and at < len(self._text):
            at = self._unquoted(at)
        return None if at is None else tuple(self._found)

    def _unquoted(self, at: int) -> int | None:
        text, char = self._text, self._text[at]
        if at in self._expansions:
            return self._expanded(at, quoted=False)
        if char == "\\":
            if at + 1 >= len(text):
                return None
            if text[at + 1] != "\n":
                self._found.append(Char(text[at + 1], True))
            return at + 2
        if char == "'":
            return self._raw(at + 1)
        if char == '"':
            return self._quoted(at + 1)
        if char == "$":
            if text[at + 1 : at + 2] == "'":
                return self._ansi(at + 2)
            if text[at + 1 : at + 2] == '"':
                return self._quoted(at + 2)
            if _starts_expansion(text, at):
                return None
        elif char in "`<>|&;() \t\n":
            return None  # the parser and this reader disagree on where the word ends
        self._found.append(Char(char, False))
        return at + 1

    def _expanded(self, at: int, *, quoted: bool) -> int | None:
        found = self._expansions[at]
        if found.value is None:
            return None
        if not quoted and not _PLAIN.fullmatch(found.value):
            return None  # it would be split into words, or be a glob
        self._found += [Char(char, True) for char in found.value]
        return found.end

    def _raw(self, at: int) -> int | None:
        end = self._text.find("'", at)
        if end < 0:
            return None
        self._found += [Char(char, True) for char in self._text[at:end]]
        return end + 1

    def _quoted(self, at: int) -> int | None:
        text = self._text
        while at < len(text):
            char = text[at]
            if char == '"':
                return at + 1
            if at in self._expansions:
                after = self._expanded(at, quoted=True)
                if after is None:
                    return None
                at = after
                continue
            if char == "`" or (char == "$" and _starts_expansion(text, at)):
                return None
            if char == "\\" and text[at + 1 : at + 2] in ('"', "\\", "$", "`", "\n"):
                at += 1
                char = "" if text[at] == "\n" else text[at]
            if char:
                self._found.append(Char(char, True))
            at += 1
        return None

    def _ansi(self, at: int) -> int | None:
        text = self._text
        while at < len(text):
            char = text[at]
            if char == "'":
                return at + 1
            if char != "\\":
                self._found.append(Char(char, True))
                at += 1
                continue
            code = _ANSI_CODE.match(text, at + 1)
            if code is not None:
                number = int(next(filter(None, code.groups())), 8 if code[1] else 16)
                if not 0 < number < (0x80 if code[1] or code[2] else 0xD800):
                    return None  # a byte of a longer character, or the end of the string
                self._found.append(Char(chr(number), True))
                at = code.end()
            elif text[at + 1 : at + 2] in _ANSI:
                self._found.append(Char(_ANSI[text[at + 1]], True))
                at += 2
            else:
                return None
        return None


def _starts_expansion(text: str, at: int) -> bool:
    after = text[at + 1 : at + 2]
    return after.isalnum() or (after != "" and after in "_{([@*#?$!-")


def _braces(chars: Chars) -> list[Chars] | None:
    """Expands `{a,b}`; None if the braces are of another kind, such as nested ones."""
    opening, closing, comma = Char("{", False), Char("}", False), Char(",", False)
    if opening not in chars:
        return [chars]
    if comma not in chars and not _has_range(chars):
        return [chars]  # `{}` and `{a}` stand for themselves
    start = chars.index(opening)
    if closing not in chars[start:]:
        return None
    end = chars.index(closing, start)
    inner = chars[start + 1 : end]
    rest = _braces(chars[end + 1 :])
    if rest is None or opening in inner or comma not in inner:
        return None
    if closing in chars[:start] or any(closing in tail and opening not in tail for tail in rest):
        return None
    found = [chars[:start] + part + tail for part in _split(inner) for tail in rest]
    return found if len(found) <= _MAX_WORDS else None


def _has_range(chars: Chars) -> bool:
    dot = Char(".", False)
    return any(pair == (dot, dot) for pair in pairwise(chars))


def _split(chars: Chars) -> list[Chars]:
    parts: list[list[Char]] = [[]]
    for each in chars:
        if each == Char(",", False):
            parts.append([])
        else:
            parts[-1].append(each)
    return [tuple(part) for part in parts]


def _tilde(chars: Chars, home: str) -> Chars | None:
    """Resolves a leading `~`; None if it is another user's, or another shell's syntax."""
    if not chars or chars[0].quoted or chars[0].char not in "~=":
        # bash resolves `~` also behind `=` and `:` of what looks like an assignment.
        suspect = any(
            left in (Char("=", False), Char(":", False)) and right == Char("~", False)
            for left, right in pairwise(chars)
        )
        return None if suspect else chars
    if chars[0].char == "=":
        return None  # zsh: the path of a program
    if len(chars) > 1 and chars[1] != Char("/", False):
        return None
    if not home.startswith("/"):
        return None
    return tuple(Char(char, True) for char in home) + chars[1:]


def resolve_globs(word: Word, directories: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Returns the names that globs match now, as bash sorts them; None if they cannot be told."""
    found: list[str] = []
    for chars in word.patterns:
        if not _has_glob(chars):
            found.append("".join(char for char, _ in chars))
            continue
        absolute = bool(chars) and chars[0].char == "/"
        if not absolute and (directories is None or len(directories) != 1):
            return None
        names = _matches(chars, "" if absolute or directories is None else directories[0])
        if names is None:
            return None
        found += names or ["".join(char for char, _ in chars)]
        if len(found) > _MAX_WORDS:
            return None
    return tuple(found)


def _matches(chars: Chars, directory: str) -> list[str] | None:
    parts: list[Chars] = []
    part: list[Char] = []
    for each in chars:
        if each.char == "/":
            parts.append(tuple(part))
            part = []
        else:
            part.append(each)
    parts.append(tuple(part))
    found = [""]
    for number, each in enumerate(parts):
        is_last = number == len(parts) - 1
        if not _has_glob(each):
            name = "".join(char for char, _ in each)
            found = [prefix + name + ("" if is_last else "/") for prefix in found]
            if number and any(map(_has_glob, parts[:number])):
                found = [path for path in found if os.path.lexists(_in(directory, path))]
            continue
        pattern = _pattern(each)
        if pattern is None:
            return None
        expanded: list[str] = []
        for prefix in found:
            names = _entries(_in(directory, prefix) or ".")
            if names is None:
                return None
            expanded += [
                prefix + name + ("" if is_last else "/")
                for name in names
                if pattern.fullmatch(name)
                and (name[0] != "." or each[0].char == ".")
                and (is_last or os.path.isdir(_in(directory, prefix + name)))
            ]
            if len(expanded) > _MAX_WORDS:
                return None
        found = expanded
    return sorted(found)


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
        if quoted or char not in _GLOB:
            out.append(re.escape(char))
        elif char == "[":
            return None
        else:
            # A row of stars is one star. Backtracking is bounded by the length of a name.
            mark = ".*" if char == "*" else "."
            if not (mark == ".*" and out and out[-1] == mark):
                out.append(mark)
    return None if out.count(".*") > 4 else re.compile("".join(out), re.DOTALL)
