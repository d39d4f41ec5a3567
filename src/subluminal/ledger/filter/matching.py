"""Whether a call that is at hand passes a filter: for live events, where no SQL can ask.

Means the same as the query layer's SQL. A fact that is not known passes no term about it, and so no
negated one either: NULL in SQL is neither.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from subluminal.ledger.filter.fields import CALL_FIELDS, Kind
from subluminal.ledger.filter.language import Filter, Term

Facts = Mapping[str, str | int | None]
"""What is known of a call, by field; `at` is its time, `text` its previews."""

_TOKEN = re.compile(r"[^\W_]+")


def matches(terms: Filter, facts: Facts) -> bool:
    """Whether all terms hold."""
    return all(_holds(term, facts) for term in terms)


def _holds(term: Term, facts: Facts) -> bool:
    kind = CALL_FIELDS[term.field].kind
    fact = facts.get("at" if kind is Kind.TIME else term.field)
    if fact is None:
        return False
    return any(_is(kind, term.operator, fact, value) for value in term.values) != term.negated


def _is(kind: Kind, operator: str, fact: str | int, value: str | int) -> bool:
    if isinstance(fact, int) and isinstance(value, int):
        return _compared(operator, fact, value)
    if kind is Kind.TEXT:
        return _contains(str(fact), str(value))
    return fnmatchcase(str(fact), str(value).replace("[^", "[!"))


def _compared(operator: str, fact: int, value: int) -> bool:
    match operator:
        case "<":
            return fact < value
        case "<=":
            return fact <= value
        case ">":
            return fact > value
        case ">=":
            return fact >= value
        case _:
            return fact == value


def _contains(text: str, wanted: str) -> bool:
    """As the full-text index sees it: a phrase of whole words; `*` at its end is a beginning."""
    words = _TOKEN.findall(wanted.lower())
    if not words:
        return False
    tokens = " ".join(["", *_TOKEN.findall(text.lower()), ""])
    phrase = " " + " ".join(words)
    return phrase in tokens if wanted.endswith("*") else phrase + " " in tokens
