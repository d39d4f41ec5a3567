"""What may be asked of the ledger, and of which page. No SQL: every engine answers these questions.

The filter language can say everything. Where a term fits a field of CallFilter, it goes there,
because the planner has indexes for these fields. All other terms are tested row by row.
"""

from enum import StrEnum
from typing import Any

from msgspec import Struct, structs

from subluminal.errors import SubluminalError
from subluminal.ledger.filter.language import Filter, Term

MAX_LIMIT = 1_000
DEFAULT_LIMIT = 100

_EXACT = {
    "run": "run",
    "rule": "rule",
    "hash": "args_hash",
    "decision": "decision",
    "status": "status",
}
_PATTERNS = ("server", "tool")
_TIMES = {"since": "since_ms", "until": "until_ms"}


class InvalidQuery(SubluminalError):
    """The question itself is wrong."""


class CallFilter(Struct, frozen=True, kw_only=True):
    """Which calls. All given fields must match. `server` and `tool` take `*`, `?` and `[…]`."""

    run: str | None = None
    server: str | None = None
    tool: str | None = None
    decision: str | None = None
    status: str | None = None
    rule: str | None = None
    text: str | None = None
    """words that the previews must contain"""
    args_hash: str | None = None
    since_ms: int | None = None
    """earliest start, inclusive, in milliseconds"""
    until_ms: int | None = None
    """latest start, exclusive, in milliseconds"""
    terms: Filter = ()
    """terms that do not fit the fields above"""


class RunFilter(Struct, frozen=True, kw_only=True):
    """Which runs. All fields that are given must match."""

    agent: str | None = None
    client: str | None = None
    env: str | None = None
    status: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    terms: Filter = ()
    """terms of the filter language"""


class IntentFilter(Struct, frozen=True, kw_only=True):
    """Which intents. All fields that are given must match."""

    run: str | None = None
    pack: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    terms: Filter = ()
    """terms of the filter language"""


class ApprovalState(StrEnum):
    """The state of an approval, in the words of `sub approvals`."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    USED = "used"
    """its grant has no uses left"""
    EXPIRED = "expired"


class RecoveryBy(StrEnum):
    """What recovery is counted by."""

    RULE = "rule"
    CLIENT = "client"
    BOTH = "both"


class Paging(Struct, frozen=True, kw_only=True):
    """Which page of the answer."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    """`next` of the previous page"""
    newest_first: bool = True


def checked(paging: Paging) -> Paging:
    """Raises InvalidQuery if the limit is out of range."""
    if not 1 <= paging.limit <= MAX_LIMIT:
        raise InvalidQuery(
            f"limit {paging.limit} is out of range", hint=f"between 1 and {MAX_LIMIT}"
        )
    return paging


def cursor_of(*numbers: int) -> str:
    """The cursor for a page that ended at this key."""
    return ".".join(str(number) for number in numbers)


def numbers_of(cursor: str, count: int) -> tuple[int, ...]:
    """The key in a cursor. Raises InvalidQuery if it is not a cursor with `count` numbers."""
    parts = cursor.split(".")
    is_cursor = len(parts) == count and all(map(_is_number, parts))
    numbers = tuple(int(part) for part in parts) if is_cursor else ()
    if not numbers or not all(-(2**63) <= number < 2**63 for number in numbers):
        raise InvalidQuery(
            f"`{cursor[:40]}` is not a valid cursor", hint="use `next` of the previous page"
        )
    return numbers


def _is_number(text: str) -> bool:
    """Whether text is a whole number. Times before 1970 are negative."""
    return text.isascii() and text.removeprefix("-").isdigit()


def has_wildcard(pattern: str) -> bool:
    """Whether a name is a pattern."""
    return any(char in pattern for char in "*?[")


def call_filter(terms: Filter, given: CallFilter | None = None) -> CallFilter:
    """Turns terms into a filter for calls. All that `given` says must match too."""
    wanted = given or CallFilter()
    known: dict[str, Any] = {
        name: value for name, value in structs.asdict(wanted).items() if value is not None
    }
    rest: list[Term] = []
    for term in terms:
        name = _field_for(term)
        if name == "text" and not term.negated:
            known["text"] = " ".join(filter(None, [known.get("text"), _phrase(term.values[0])]))
        elif name is None or name in known:
            rest.append(term)
        else:
            known[name] = _value(term)
    return CallFilter(**(known | {"terms": (*wanted.terms, *rest)}))


def _field_for(term: Term) -> str | None:
    """The field of CallFilter that can express a term."""
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


def _value(term: Term) -> str | int:
    value = term.values[0]
    return str(value).replace("[^", "[!") if term.field in _PATTERNS else value


def _phrase(value: str | int) -> str:
    """Quotes the words of one term, so that they are searched for together. Keeps `word*`."""
    text = str(value).replace('"', " ")
    return text if text.endswith("*") and " " not in text else f'"{text}"'
