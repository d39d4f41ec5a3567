"""Reads one word of a shell line: quotes removed, braces and `~` resolved. Globs: `globs`.

A word is *known* if its value can be told before the line runs. The parser finds the expansions in
a word; the rest is read here, because the parser drops blanks in quoted text.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_MAX_BRACES = 6
"""Most pairs of braces in one word. More make the word unknown."""
MAX_WORDS = 64
"""Most words that braces or a glob may expand to. More make the word unknown."""

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,-][A-Za-z0-9_./:=@%+,-]*")
_PLAIN_QUOTED = re.compile(r"'([^']*)'|\"([^\"\\$`]*)\"")
GLOB = frozenset("*?[")
_ANSI = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
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
    alternatives = [] if chars is None else _braces(chars) or []
    # `''~` is not a home, because the word begins with a quote.
    own = home if text.startswith("~") else ""
    ready = [_tilde(each, own) for each in alternatives]
    known = [each for each in ready if each is not None]
    if not known or len(known) != len(ready):
        return Word((text,), known=False)
    texts = tuple("".join(char for char, _ in each) for each in known)
    if any(map(has_glob, known)):
        return Word(texts, globs=True, patterns=tuple(known))
    if "'" not in text and '"' not in text:
        # A word that braces leave without a character disappears; one with quotes does not.
        texts = tuple(each for each in texts if each)
    return Word(texts)


def has_glob(chars: Chars) -> bool:
    """Whether characters of a word are a glob."""
    return any(char in GLOB and not quoted for char, quoted in chars)


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
        char = self._text[at]
        if at in self._expansions:
            return self._expanded(at, quoted=False)
        if char == "$":
            return self._dollar(at)
        if char == "\\":
            return self._escaped(at + 1)
        if char in "\"'":
            return self._raw(at + 1) if char == "'" else self._quoted(at + 1)
        if char in "`<>|&;() \t\n":
            return None  # the parser and this reader disagree on where the word ends
        self._found.append(Char(char, False))
        return at + 1

    def _dollar(self, at: int) -> int | None:
        after = self._text[at + 1 : at + 2]
        if after == "'":
            return self._ansi(at + 2)
        if after == '"':
            return self._quoted(at + 2)
        if _starts_expansion(self._text, at):
            return None
        self._found.append(Char("$", False))
        return at + 1

    def _escaped(self, at: int) -> int | None:
        if at >= len(self._text):
            return None
        if self._text[at] != "\n":
            self._found.append(Char(self._text[at], True))
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
    if chars.count(opening) > _MAX_BRACES or closing not in chars[start:]:
        return None
    end = chars.index(closing, start)
    inner = chars[start + 1 : end]
    rest = _braces(chars[end + 1 :])
    if rest is None or opening in inner or comma not in inner:
        return None
    if closing in chars[:start] or any(closing in tail and opening not in tail for tail in rest):
        return None
    found = [chars[:start] + part + tail for part in _split(inner) for tail in rest]
    return found if len(found) <= MAX_WORDS else None


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
    first = chars[0] if chars else Char("", True)
    if first == Char("~", False):
        is_own = len(chars) == 1 or chars[1] == Char("/", False)
        if not is_own or not home.startswith("/"):
            return None
        return tuple(Char(char, True) for char in home) + chars[1:]
    # bash resolves `~` also behind `=` and `:` of an assignment; zsh takes `=ls` as a path.
    marks = (Char("=", False), Char(":", False))
    is_odd = first == marks[0] or any(
        left in marks and right == Char("~", False) for left, right in pairwise(chars)
    )
    return None if is_odd else chars
