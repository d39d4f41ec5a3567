"""As many rows as a person asked for, page by page."""

from collections.abc import Callable

from subluminal.ledger.client.ledger import Found, Page, Row

_PAGE = 1_000
"""The most that the ledger gives at once."""


def rows_of(
    ask: Callable[[str, Page], Found], where: str, limit: int, *, newest_first: bool
) -> list[Row]:
    """Pages until there are enough."""
    rows: list[Row] = []
    cursor: str | None = None
    while len(rows) < limit:
        found = ask(where, Page(min(_PAGE, limit - len(rows)), newest_first, cursor))
        rows += found.rows
        cursor = found.next
        if cursor is None:
            break
    return rows
