"""From the filter language to the query layer: the planner's fields first, then the rest."""

from typing import Any

from msgspec import structs

from subluminal.ledger.filter.language import Filter, Term
from subluminal.ledger.query.filters import CallFilter, has_wildcard

_EXACT = {
    "run": "run",
    "rule": "rule",
    "hash": "args_hash",
    "decision": "decision",
    "status": "status",
}
_PATTERNS = ("server", "tool")
_TIMES = {"since": "since_ms", "until": "until_ms"}


def call_filter(terms: Filter, given: CallFilter | None = None) -> CallFilter:
    """A filter for calls; what `given` says must hold too."""
    wanted = given or CallFilter()
    known: dict[str, Any] = {
        name: value for name, value in structs.asdict(wanted).items() if value is not None
    }
    rest: list[Term] = []
    for term in terms:
        place = _place(term)
        if place == "text" and not term.negated:
            known["text"] = " ".join(filter(None, [known.get("text"), _phrase(term.values[0])]))
        elif place is None or place in known:
            rest.append(term)
        else:
            known[place] = _value(term)
    return CallFilter(**(known | {"terms": (*wanted.terms, *rest)}))


def _value(term: Term) -> str | int:
    value = term.values[0]
    return str(value).replace("[^", "[!") if term.field in _PATTERNS else value


def _place(term: Term) -> str | None:
    """The planner's field that can say this term."""
    if term.negated or len(term.values) != 1:
        return None
    value = term.values[0]
    if term.field in _TIMES:
        return _TIMES[term.field]
    if term.field in (*_PATTERNS, "text"):
        return term.field
    if term.field in _EXACT and not has_wildcard(str(value)):
        return _EXACT[term.field]
    return None


def _phrase(value: str | int) -> str:
    """The words of one term belong together; a `*` at their end stays a beginning."""
    text = str(value).replace('"', " ")
    return text if text.endswith("*") and " " not in text else f'"{text}"'
