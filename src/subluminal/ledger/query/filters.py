"""What to look for. Text that people type becomes one of these, or a clear error."""

from msgspec import Struct

from subluminal.errors import SubluminalError
from subluminal.ledger.filter.language import Filter

MAX_LIMIT = 1_000
DEFAULT_LIMIT = 100


class InvalidQuery(SubluminalError):
    """The question itself is wrong."""


class CallFilter(Struct, frozen=True, kw_only=True):
    """Which calls. All that is given must hold; names take `*`, `?` and `[…]`."""

    run: str | None = None
    server: str | None = None
    tool: str | None = None
    decision: str | None = None
    status: str | None = None
    rule: str | None = None
    text: str | None = None
    """words that its previews must contain"""
    args_hash: str | None = None
    since_ms: int | None = None
    """inclusive"""
    until_ms: int | None = None
    """exclusive"""
    terms: Filter = ()
    """what the filter language can say beyond all this"""


class Paging(Struct, frozen=True, kw_only=True):
    """Which part of the answer."""

    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    """`next` of the page before"""
    newest_first: bool = True


def checked(paging: Paging) -> Paging:
    """Refuses a page that is too large."""
    if not 1 <= paging.limit <= MAX_LIMIT:
        raise InvalidQuery(
            f"limit {paging.limit} is out of range", hint=f"between 1 and {MAX_LIMIT}"
        )
    return paging


def cursor_of(*numbers: int) -> str:
    """Where a page ended."""
    return ".".join(str(number) for number in numbers)


def numbers_of(cursor: str, count: int) -> tuple[int, ...]:
    """Reads a cursor back."""
    parts = cursor.split(".")
    if len(parts) != count or not all(part.isascii() and part.isdigit() for part in parts):
        raise InvalidQuery(f"`{cursor[:40]}` is no cursor", hint="use `next` of the page before")
    numbers = tuple(int(part) for part in parts)
    if max(numbers) > 2**63 - 1:
        raise InvalidQuery(f"`{cursor[:40]}` is no cursor", hint="use `next` of the page before")
    return numbers


def has_wildcard(pattern: str) -> bool:
    """Whether a name is a glob."""
    return any(char in pattern for char in "*?[")
