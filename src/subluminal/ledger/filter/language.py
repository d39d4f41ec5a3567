"""Parses the filter language: text to terms, and back.

Example: `decision:BLOCK server:git* latency>500 text:"rm -rf"`. All terms must hold. A comma
separates alternatives. `!=`, or a `-` in front, negates a term. Names take `*`, `?` and `[…]`. A
word without a field is searched for in the previews. `matching` evaluates terms on events, and
`query` turns them into SQL; both mean the same.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.ledger.filter.fields import CALL_FIELDS, TIMES, Field, Kind
from subluminal.ledger.filter.values import InvalidValue, read_value, written

MAX_FILTER_CHARS = 4_096
MAX_TERMS = 32


class Term(NamedTuple):
    """One condition. Numbers and times are integers, all other values are text."""

    field: str
    operator: str
    """`:`, `<`, `<=`, `>` or `>=`"""
    values: tuple[str | int, ...]
    """alternatives: one of them must match"""
    negated: bool = False

    def __str__(self) -> str:
        """The term as text. Parsing the text gives the same term."""
        values = ",".join(written(value, self.field) for value in self.values)
        operator = ":" if self.field in TIMES else self.operator
        return f"{'-' if self.negated else ''}{self.field}{operator}{values}"


Filter = tuple[Term, ...]
"""All terms must hold."""


class InvalidFilter(SubluminalError):
    """A filter with a syntax error, and where the error is."""

    def __init__(self, message: str, text: str, position: int, hint: str | None = None) -> None:
        super().__init__(f"filter, character {position + 1}: {message}", hint=hint)
        self.text = text
        self.position = position
        """index of the wrong character, from 0"""

    def pointed(self) -> list[str]:
        """Two lines for a terminal: the filter around the error, and a mark below the character."""
        start = max(0, self.position - 50)
        line = self.text[start : start + 70]
        return [line, " " * (self.position - start) + "^"]


# A term up to its value, then the pieces of the value: quoted, a comma, or bare.
# Compiled at first use, and cached by `re`, because most commands have no filter.
_HEAD = r"(?P<minus>-?)(?P<field>[A-Za-z_][A-Za-z_-]*)(?P<operator>:|!=|<=|>=|<|>|=)"
_PIECE = r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<comma>,)|(?P<bare>[^\s",]+)'
_SPACE = r"\s*"


def parse_filter(text: str, *, now_ms: int, fields: dict[str, Field] = CALL_FIELDS) -> Filter:
    """Parses a filter. Raises InvalidFilter, which points at the wrong character."""
    if len(text) > MAX_FILTER_CHARS:
        raise InvalidFilter(
            f"the filter is longer than {MAX_FILTER_CHARS} characters", text, MAX_FILTER_CHARS
        )
    terms: list[Term] = []
    at = _skip(text, 0)
    while at < len(text):
        term, at = _term(text, at, now_ms, fields)
        terms.append(term)
        if len(terms) > MAX_TERMS:
            raise InvalidFilter(f"the filter has more than {MAX_TERMS} terms", text, at - 1)
        at = _skip(text, at)
    return tuple(terms)


def make_term(
    name: str, value: str, *, now_ms: int, fields: dict[str, Field] = CALL_FIELDS
) -> Term:
    """The term of a flag such as `--server`. Raises InvalidValue."""
    field = fields[name]
    parts = value.split(",") if field.kind is Kind.WORD else [value]
    return Term(name, _operator(field, ":"), tuple(read_value(field, p, now_ms) for p in parts))


def format_filter(terms: Iterable[Term]) -> str:
    """The filter as text. `parse_filter` gives the same terms back."""
    return " ".join(str(term) for term in terms)


def _term(text: str, at: int, now_ms: int, fields: dict[str, Field]) -> tuple[Term, int]:
    head = re.compile(_HEAD).match(text, at)
    if head is None:
        return _word(text, at, fields)
    name, operator = head["field"], head["operator"]
    field = fields.get(name)
    if field is None:
        raise _unknown_field(text, head.start("field"), name, fields)
    negated = bool(head["minus"]) != (operator == "!=")
    if operator in ("=", "!="):
        operator = ":"
    if operator != ":" and field.kind is not Kind.NUMBER:
        hint = f"write `{name}:…`"
        raise InvalidFilter(f"`{name}` is not a number", text, head.start("operator"), hint)
    values, end = _values(text, head.end(), field, now_ms)
    return Term(name, _operator(field, operator), values, negated), end


def _operator(field: Field, given: str) -> str:
    """The operator of a term: fixed for time fields, as written for all others."""
    return field.operator or given


def _word(text: str, at: int, fields: dict[str, Field]) -> tuple[Term, int]:
    """Parses a word without a field: text to search for."""
    negated = text[at] == "-" and len(text) > at + 1
    begin = at + negated
    piece = re.compile(_PIECE).match(text, begin)
    if piece is None or piece["comma"]:
        raise _unreadable(text, begin)
    if "text" not in fields:
        hint = f"write FIELD:VALUE, with one of {', '.join(fields)}"
        raise InvalidFilter("this word has no field", text, begin, hint)
    value = _unescaped(piece["quoted"]) if piece["quoted"] is not None else piece["bare"]
    if not value.strip():
        raise InvalidFilter("the text to search for is empty", text, begin)
    return Term("text", ":", (value,), negated), piece.end()


def _values(text: str, at: int, field: Field, now_ms: int) -> tuple[tuple[str | int, ...], int]:
    values: list[str | int] = []
    while True:
        raw, end = _value(text, at)
        if end == at:
            raise InvalidFilter(
                f"`{field.name}` needs a value", text, min(at, len(text)), field.example
            )
        try:
            values.append(read_value(field, raw, now_ms))
        except InvalidValue as problem:
            raise InvalidFilter(str(problem), text, at, problem.hint) from None
        if text[end : end + 1] != ",":
            return tuple(values), end
        at = end + 1


def _value(text: str, at: int) -> tuple[str, int]:
    """Parses one alternative: bare and quoted pieces up to a comma or a space."""
    parts: list[str] = []
    while (piece := re.compile(_PIECE).match(text, at)) and not piece["comma"]:
        parts.append(_unescaped(piece["quoted"]) if piece["quoted"] is not None else piece["bare"])
        at = piece.end()
    if text[at : at + 1] == '"':
        raise _unreadable(text, at)
    return "".join(parts), at


def _unescaped(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted)


def _skip(text: str, at: int) -> int:
    found = re.compile(_SPACE).match(text, at)
    return found.end() if found else at


def _unreadable(text: str, at: int) -> InvalidFilter:
    if text[at] == '"':
        return InvalidFilter("this quote is not closed", text, at)
    return InvalidFilter(f"unexpected `{text[at]}`", text, at, "put the value in quotes")


def _unknown_field(text: str, at: int, name: str, fields: dict[str, Field]) -> InvalidFilter:
    from subluminal.contracts.shape import did_you_mean

    hint = did_you_mean(name, list(fields)) or f"one of {', '.join(fields)}"
    return InvalidFilter(f"unknown field `{name}`", text, at, hint)


def terms_of(terms: Sequence[Term], name: str) -> list[Term]:
    """The terms about one field."""
    return [term for term in terms if term.field == name]
