"""Tables and fields that fit the terminal. In a pipe nothing is cut.

Columns are as wide as their contents; the widest shrink first. Widths count characters as terminals
do: East Asian characters take two places.
"""

from collections.abc import Sequence
from typing import NamedTuple

from subluminal.cli.output import Output, shown, terminal_width
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell

GAP = "  "
_CUT = "…"


class Column(NamedTuple):
    """A column's heading and layout."""

    heading: str
    right: bool = False
    shrinks_to: int = 0
    """least number of places when room is short; 0: never cut"""
    needs: int = 0
    """width of a terminal below which the column is left out"""


class Screen:
    """Where a command prints tables. On a terminal it has a width and a time, in a pipe neither."""

    def __init__(self, out: Output, now_ms: int) -> None:
        self.out = out
        self.width = terminal_width() if out.out_is_terminal else None
        self.now_ms = now_ms if out.out_is_terminal else None

    def id(self, name: str) -> Cell:
        """Formats an id: short on a terminal, whole in a pipe."""
        return Cell(name if self.width is None else cells.short_id(name))

    def time(self, ts: str | None) -> Cell:
        """Formats a time: as an age on a terminal, else as it was recorded."""
        return cells.moment(ts, self.now_ms)

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
        """Prints a table."""
        print_table(self.out, columns, rows, self.width)

    def field(self, label: str, value: Cell, more: str = "", *, width: int = 10) -> None:
        """Prints one field of a detail: its label, its value and a remark."""
        name = self.out.paint(f"{label:<{width}}", "dim")
        self.out.line(f"  {name}  {self.painted(value)}  {shown(more)}".rstrip())

    def painted(self, cell: Cell) -> str:
        """Returns a cell's text in its colour."""
        return self.out.paint(cell, cell.colour) if cell.colour else str(cell)


def print_table(
    out: Output, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None
) -> None:
    """Prints the headings and the rows; with `width` None nothing is cut."""
    widths = _widths(columns, rows, width)
    headings = [Cell(column.heading, "dim") for column in columns]
    for row in [headings, *rows]:
        parts = [
            _placed(out, cell, size, right=column.right)
            for cell, size, column in zip(row, widths, columns, strict=True)
            if size > 0
        ]
        out.line(GAP.join(parts).rstrip())


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int | None
) -> list[int]:
    widths = [
        max([width_of(column.heading), *(width_of(row[index]) for row in rows)])
        for index, column in enumerate(columns)
    ]
    if width is None:
        return widths
    for index, column in enumerate(columns):
        if width < column.needs:
            widths[index] = -len(GAP)  # neither the column nor the gap beside it
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while over > 0:
        # The widest column that may shrink gives way, so that all end up about as wide.
        giving = [i for i, c in enumerate(columns) if c.shrinks_to and widths[i] > c.shrinks_to]
        if not giving:
            break
        widest = max(giving, key=lambda i: widths[i])
        widths[widest] -= 1
        over -= 1
    return widths


def _placed(out: Output, cell: Cell, size: int, *, right: bool) -> str:
    text = cut(cell, size)
    padding = " " * (size - width_of(text))
    painted = out.paint(text, cell.colour) if cell.colour else text
    return padding + painted if right else painted + padding


def cut(text: str, size: int) -> str:
    """Cuts text to `size` places of a terminal."""
    if width_of(text) <= size:
        return str(text)
    taken = ""
    for char in text:
        if width_of(taken + char) > size - 1:
            break
        taken += char
    return taken + _CUT


def width_of(text: str) -> int:
    """Returns how many places of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )
