"""Tables that fit: columns as wide as their contents, cut where the terminal ends.

In a pipe nothing is cut. Width counts characters as terminals do: East Asian ones are two.
"""

from collections.abc import Sequence
from typing import NamedTuple

from subluminal.cli.output import Output
from subluminal.cli.screens.cells import Cell

GAP = "  "
_CUT = "…"


class Column(NamedTuple):
    """A heading, and how its cells stand."""

    heading: str
    right: bool = False
    shrinks_to: int = 0
    """0: never cut; else cut down to this many characters where room is short"""


def print_table(
    out: Output, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None
) -> None:
    """Prints a heading and the rows; `width` None cuts nothing."""
    widths = _widths(columns, rows, width)
    headings = [Cell(column.heading, "dim") for column in columns]
    for row in [headings, *rows]:
        parts = [
            _placed(out, cell, size, right=column.right)
            for cell, size, column in zip(row, widths, columns, strict=True)
            if size
        ]
        out.line(GAP.join(parts).rstrip())


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None
) -> list[int]:
    widths = [
        max([cells(column.heading), *(cells(row[index]) for row in rows)])
        for index, column in enumerate(columns)
    ]
    if width is None:
        return widths
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while over > 0:
        # The widest that may still give way does, so that all end up alike.
        giving = [i for i, c in enumerate(columns) if c.shrinks_to and widths[i] > c.shrinks_to]
        if not giving:
            break
        widest = max(giving, key=lambda i: widths[i])
        widths[widest] -= 1
        over -= 1
    return widths


def _placed(out: Output, cell: Cell, size: int, *, right: bool) -> str:
    text = cut(cell, size)
    padding = " " * (size - cells(text))
    painted = out.paint(text, cell.colour) if cell.colour else text
    return padding + painted if right else painted + padding


def cut(text: str, size: int) -> str:
    """At most so many places of a terminal."""
    if cells(text) <= size:
        return str(text)
    taken = ""
    for char in text:
        if cells(taken + char) > size - 1:
            break
        taken += char
    return taken + _CUT


def cells(text: str) -> int:
    """How many places a terminal needs for a text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )
