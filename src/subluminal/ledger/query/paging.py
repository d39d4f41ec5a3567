"""Pages in the order of time, as SQL: every list is ordered by a time, then by row id."""

from subluminal.ledger.query.questions import Paging, numbers_of

Key = tuple[int, int]
"""time in milliseconds, row id: what a cursor holds"""


def after_cursor(paging: Paging, time: str, number: str) -> tuple[list[str], list[object]]:
    """The condition that a row comes after the cursor, and its values."""
    if paging.cursor is None:
        return [], []
    sign = "<" if paging.newest_first else ">"
    return [f"({time}, {number}) {sign} (?, ?)"], [*numbers_of(paging.cursor, 2)]


def order_by(paging: Paging, time: str, number: str) -> str:
    """The ORDER BY clause."""
    direction = "DESC" if paging.newest_first else "ASC"
    return f"ORDER BY {time} {direction}, {number} {direction}"
