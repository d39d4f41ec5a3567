r"""Translates regular expressions of JavaScript to RE2, with the same meaning.

Agent-SPM compiles `matches_regex` with the flag `i` and without `u`. There `\s` takes a no-break
space, `.` stops at four line ends, `\p` is the letter p and `[[:alpha:]]` is a set and a bracket;
RE2 reads all of these differently. So every part is written anew. What JavaScript cannot compile is
refused, and so is what cannot be matched in linear time (linear-patterns).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.policy.dialects.agent_spm.shape import MAX_EXPRESSION_CHARS

_DOT = r"[^\n\r\x{2028}\x{2029}]"
_NOTHING, _EVERYTHING = r"[^\x00-\x{10ffff}]", r"[\x00-\x{10ffff}]"
_SPACE = r"\t-\r\pZ\x{feff}"
_NOT_SPACE = (
    r"\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
_SETS = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": _SPACE, "S": _NOT_SPACE}
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_SPECIAL = frozenset("\\.+*?()|[]{}^$-&~")
_LOOKS = {
    "(?=": "a lookahead",
    "(?!": "a lookahead",
    "(?<=": "a lookbehind",
    "(?<!": "a lookbehind",
}
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_GROUP_NAME = re.compile(r"\(\?<([^\W\d][\w$]*)>")
_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_HEX = {"x": re.compile(r"[0-9A-Fa-f]{2}"), "u": re.compile(r"[0-9A-Fa-f]{4}")}
_NUMBER = re.compile(r"[1-9]\d*")

_SKIPPED = "|".join(
    (
        r"\(.*[+*].*\)[+*]",
        r"\(.*\|.*\)[+*]",
        r"\(.*[+*].*\)\{",
        r"\([^)]*\*[^)]*\)\*",
        r"\([^)]*\+[^)]*\)\+",
        r"(?:\.\*){2}",
    )
)
"""The shapes that Agent-SPM takes for dangerous. It skips a condition with such a pattern."""


class CannotTranslate(SubluminalError):
    """A pattern that JavaScript cannot compile, or that has no form in linear time."""


class _Member(NamedTuple):
    """A member of a set: one character, or a set of its own."""

    text: str
    code: int | None


def is_skipped(pattern: str) -> bool:
    """Whether Agent-SPM never runs this pattern, because it could take exponential time there."""
    import re2

    return re2.search(_SKIPPED, pattern) is not None


def translate(pattern: str) -> str:
    """Returns the pattern in RE2's syntax. Raises CannotTranslate."""
    if len(pattern.encode("utf-16-le")) > 2 * MAX_EXPRESSION_CHARS:
        raise CannotTranslate(f"longer than {MAX_EXPRESSION_CHARS} characters")
    return _Translator(pattern).run()


class _Translator:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._open = 0
        self._names: set[str] = set()
        opened = list(_opened(pattern))
        self._groups = len(opened)
        self._is_named = any(each.startswith("(?<") for each in opened)
        self._repeatable = False
        self._readers = {
            "\\": self._escape,
            "[": self._class,
            "(": self._group,
            ")": self._close,
            "{": self._braces,
        }

    def run(self) -> str:
        out: list[str] = []
        while self._at < len(self._text):
            out.append(self._next())
        if self._open:
            raise CannotTranslate("`(` without a closing `)`")
        return "".join(out)

    def _next(self) -> str:
        char = self._text[self._at]
        read = self._readers.get(char)
        if read is not None:
            return read()
        if char in "*+?":
            return self._repeat(char)
        self._at += 1
        self._repeatable = char not in "^$|"
        return {".": _DOT, "^": r"\A", "$": r"\z", "|": "|"}.get(char) or _literal(ord(char))

    def _group(self) -> str:
        for mark, name in _LOOKS.items():
            if self._text.startswith(mark, self._at):
                raise CannotTranslate(f"{name} `{mark}` cannot be matched in linear time")
        named = _GROUP_NAME.match(self._text, self._at)
        if named is not None:
            if named.group(1) in self._names:
                raise CannotTranslate(f"two groups are named `{named.group(1)}`")
            self._names.add(named.group(1))
            self._at = named.end()
        elif self._text.startswith("(?:", self._at):
            self._at += 3
        elif self._text.startswith("(?", self._at):
            raise CannotTranslate("`(?` begins no group that JavaScript knows")
        else:
            self._at += 1
        self._open += 1
        self._repeatable = False
        return "(?:"

    def _close(self) -> str:
        if not self._open:
            raise CannotTranslate("`)` without an opening `(`")
        self._open -= 1
        self._at += 1
        self._repeatable = True
        return ")"

    def _braces(self) -> str:
        count = _COUNT.match(self._text, self._at)
        if count is None:  # JavaScript takes any other `{` as itself
            self._at += 1
            self._repeatable = True
            return _literal(ord("{"))
        low, high = count.groups()
        if high and int(high) < int(low):
            raise CannotTranslate(f"`{count.group()}`: the numbers are out of order")
        return self._repeat(count.group())

    def _repeat(self, mark: str) -> str:
        if not self._repeatable:
            raise CannotTranslate(f"`{mark}` has nothing to repeat")
        self._at += len(mark)
        self._repeatable = False
        if self._text.startswith("?", self._at):
            self._at += 1
            return f"{mark}?"
        return mark

    def _escape(self) -> str:
        self._repeatable = True
        kind = self._text[self._at + 1 : self._at + 2]
        if kind and kind in "bB":
            self._at += 2
            self._repeatable = False
            return "\\" + kind
        self._refuse_backreference(kind)
        member = self._escaped()
        return member.text if member.code is not None else f"[{member.text}]"

    def _refuse_backreference(self, kind: str) -> None:
        number = _NUMBER.match(self._text, self._at + 1)
        is_number = number is not None and int(number.group()) <= self._groups
        if is_number or (kind == "k" and self._is_named):
            raise CannotTranslate("a backreference cannot be matched in linear time")

    def _escaped(self) -> _Member:
        """Reads an escape, inside a set or outside."""
        kind = self._text[self._at + 1 : self._at + 2]
        if not kind:
            raise CannotTranslate("`\\` at the end")
        if kind in _SETS:
            self._at += 2
            return _Member(_SETS[kind], None)
        code = self._code(kind)
        return _Member(_literal(code), code)

    def _code(self, kind: str) -> int:
        """Returns the character that an escape stands for, and moves behind the escape."""
        octal = _OCTAL.match(self._text, self._at + 1)
        if octal is not None:
            self._at = octal.end()
            return int(octal.group(), 8)
        if kind == "c":
            return self._control()
        self._at += 2
        if kind in _HEX:
            return self._hex(kind)
        return ord(_CONTROLS.get(kind, kind))

    def _control(self) -> int:
        letter = self._text[self._at + 2 : self._at + 3]
        if letter.isascii() and letter.isalpha():
            self._at += 3
            return ord(letter) % 32
        self._at += 1  # without a letter, the `\` stands for itself
        return ord("\\")

    def _hex(self, kind: str) -> int:
        digits = _HEX[kind].match(self._text, self._at)
        if digits is None:
            return ord(kind)
        self._at = digits.end()
        code = int(digits.group(), 16)
        if not 0xD800 <= code <= 0xDFFF:
            return code
        low = _HEX["u"].match(self._text, self._at + 2)
        if self._text.startswith("\\u", self._at) and low is not None:
            pair = int(low.group(), 16)
            if code < 0xDC00 <= pair <= 0xDFFF:
                self._at = low.end()
                return 0x10000 + (code - 0xD800) * 0x400 + (pair - 0xDC00)
        raise CannotTranslate("half of a surrogate pair occurs in no text")

    def _class(self) -> str:
        self._repeatable = True
        negated = self._text.startswith("[^", self._at)
        self._at += 2 if negated else 1
        out: list[str] = []
        while not self._text.startswith("]", self._at):
            out.append(self._range())
        self._at += 1
        if not out:
            return _EVERYTHING if negated else _NOTHING
        return f"[{'^' if negated else ''}{''.join(out)}]"

    def _range(self) -> str:
        first = self._member()
        rest = self._text[self._at : self._at + 2]
        if rest[:1] != "-" or rest in ("-", "-]"):
            return first.text
        self._at += 1
        last = self._member()
        if first.code is None or last.code is None:  # `-` beside a set stands for itself
            return f"{first.text}{_literal(ord('-'))}{last.text}"
        if first.code > last.code:
            raise CannotTranslate("the ends of a range in `[…]` are out of order")
        return f"{first.text}-{last.text}"

    def _member(self) -> _Member:
        char = self._text[self._at : self._at + 1]
        if not char:
            raise CannotTranslate("`[` without a closing `]`")
        if char != "\\":
            self._at += 1
            return _Member(_literal(ord(char)), ord(char))
        if self._text.startswith("\\b", self._at):
            self._at += 2
            return _Member(_literal(8), 8)
        return self._escaped()


def _opened(pattern: str) -> Iterator[str]:
    """Yields the beginning of every capturing group."""
    in_class = False
    for found in re.finditer(r"\\.|\[|\]|\((?:\?<?.?)?", pattern, re.DOTALL):
        mark = found.group()
        if mark == "[":
            in_class = True
        elif mark == "]":
            in_class = False
        elif mark.startswith("(") and not in_class and _captures(mark):
            yield mark


def _captures(mark: str) -> bool:
    return mark == "(" or (mark.startswith("(?<") and mark[3:] not in ("=", "!"))


def _literal(code: int) -> str:
    """Writes one character so that RE2 takes it as itself, inside a set and outside."""
    char = chr(code)
    if char in _SPECIAL:
        return "\\" + char
    return char if char.isprintable() else f"\\x{{{code:x}}}"
