"""Characters in a definition that people do not see, and the text that they hide.

Starts from the product's list (`visible`). What emoji and some scripts need is left out: a joiner
inside an emoji or between letters of those scripts, a flag, a mark beside right-to-left letters.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.visible import RANGES

_KEPT = "\t\n\r\x0c\u2028\u2029"
"""Breaks of lines and pages, which people see as such."""
_SURROGATES = 0xD800
_UNSEEN = re.compile(
    "[" + "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in RANGES if a != _SURROGATES) + "]"
)
_ASCII_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}")
_BLANKS = re.compile(r"(?<!\s)\s{20,}+(?=\S)")
_LONG_BLANK = re.compile(r"\s{20}")
_MANY_SPACES = re.compile(r"[^\S\r\n]{100}")
_MANY_LINES = 20
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,7}\U000e007f")
_ESCAPES = "\x1b\x9b"
_JOINERS = "\u200c\u200d"
_MARKS = "\u200e\u200f\u061c"
_OVERRIDES = "\u202d\u202e"
_REORDERS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TAG_FIRST, _TAG_LAST = 0xE0020, 0xE007E
_NEEDS_JOINERS = (
    *("ARABIC", "SYRIAC", "MONGOLIAN", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA"),
    *("TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA", "MYANMAR", "KHMER", "THAANA", "NKO"),
)
_MAX_SPELLED = 60


class Hidden(NamedTuple):
    """Something in a text that people do not see."""

    what: str
    spelled: str = ""
    """the text that it hides, if that can be told"""


def find_hidden(text: str) -> Iterator[Hidden]:
    """Yields each kind of hidden text, once."""
    if not text.isascii() or _ASCII_CONTROLS.search(text):
        yield from _characters(_FLAG.sub("", text))
    for found in _BLANKS.finditer(text) if _LONG_BLANK.search(text) else ():
        blanks = found.group()
        if blanks.count("\n") >= _MANY_LINES or _MANY_SPACES.search(blanks):
            rest = " ".join(text[found.end() : found.end() + 4 * _MAX_SPELLED].split())
            yield Hidden("white space pushes text out of view", rest[:_MAX_SPELLED])
            return


def without_unseen(text: str) -> str:
    """Returns a text without invisible characters; tags become the letters that they stand for."""
    return _SELECTORS.sub("", _UNSEEN.sub(_letter, text))


def _letter(found: "re.Match[str]") -> str:
    char = found.group()
    if char in _KEPT:
        return char
    code = ord(char)
    return chr(code - 0xE0000) if _TAG_FIRST <= code <= _TAG_LAST else ""


def _characters(text: str) -> Iterator[Hidden]:
    kinds: dict[str, list[str]] = {}
    right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL") for char in text)
    for found in _UNSEEN.finditer(text):
        kind = _kind(text, found.start(), right_to_left=right_to_left)
        if kind:
            kinds.setdefault(kind, []).append(found.group())
    for kind, chars in kinds.items():
        codes = ", ".join(dict.fromkeys(f"U+{ord(char):04X}" for char in chars[:200]))
        spelled = "".join(map(_as_tag, chars)) if kind == "tags" else ""
        yield Hidden(f"{_TOLD[kind]} ({_shortened(codes)})", spelled[:_MAX_SPELLED])
    if _SELECTORS.search(text):
        yield Hidden("a run of variation selectors, which can carry text")


def _shortened(codes: str) -> str:
    listed = codes.split(", ")
    return codes if len(listed) <= 4 else f"{', '.join(listed[:4])} …"


_TOLD = {
    "tags": "characters of the tags block",
    "escapes": "escape sequences of a terminal",
    "reorders": "characters that reorder the line",
    "controls": "control characters",
    "widthless": "characters without width",
}


def _as_tag(char: str) -> str:
    code = ord(char)
    return chr(code - 0xE0000) if _TAG_FIRST <= code <= _TAG_LAST else ""


def _kind(text: str, at: int, *, right_to_left: bool) -> str:
    """Returns what an invisible character is; empty if it has its place there."""
    char = text[at]
    code = ord(char)
    if code >= _TAG_FIRST - 0x20:
        return "tags"
    if code < 0xA0:
        return "" if char in _KEPT else "escapes" if char in _ESCAPES else "controls"
    if _REORDERS.fullmatch(char):
        return "" if char not in _OVERRIDES and right_to_left else "reorders"
    if char in _MARKS and right_to_left:
        return ""
    return "" if _has_its_place(text, at) else "widthless"


def _has_its_place(text: str, at: int) -> bool:
    """Whether a character without width belongs to an emoji, or to letters that need it."""
    char, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if char in _JOINERS:
        return _joins_emoji(before, after) or _joins_letters(before)
    # A byte order mark that a file left stands first.
    return char in _KEPT or (char == "\ufeff" and at == 0)


def _joins_emoji(before: str, after: str) -> bool:
    return bool(before and after) and ord(before) > 0x2190 and ord(after) > 0x2190


def _joins_letters(before: str) -> bool:
    return bool(before) and unicodedata.name(before, "").startswith(_NEEDS_JOINERS)
