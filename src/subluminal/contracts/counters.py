"""The counters of a run, and the interface that every store of counters has (shared-runs).

`policy` reads cells and returns updates; a store writes them. One store is in memory, another is
shared by all shims of a run. A cell is a short tuple of 64-bit integers. An empty cell is a cell
that was never written.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Protocol

Cell = tuple[int, ...]

PAIR_INTS = 2
WINDOW_INTS = 128
"""Room for 64 exact entries, or for 64 buckets of (index, count)."""


class CellKind(IntEnum):
    """The table of a cell, which fixes its size and what happens when the table is full."""

    PAIR = 0
    """budgets and token buckets: at most 2 integers, never evicted; key of 16 bytes"""
    WINDOW = 1
    """error and latency windows: at most 128 integers, never evicted; key of 16 bytes"""
    RECENT = 2
    """dedupe and repeat keys: at most 128 integers; the least recently written of 4,096 cells is
    evicted first; key of 32 bytes"""
    TAINT = 3
    """the level of the run: one cell with one integer, a rank of TAINT_RANK; a write never lowers
    the rank, whatever it says"""


TAINT_KEY = b"taint"
"""The key of the only cell of kind TAINT. While it is empty, the level is SYSTEM."""


Update = tuple[CellKind, bytes, Cell]
"""The new contents of one cell. A plain tuple, because every call makes several."""


class CountersFull(Exception):
    """The run would need more than MAX_COUNTERS counters. Nothing was written."""


class Counters(Protocol):
    """A store of cells. The caller holds the lock that makes read, evaluate and write one step."""

    def read(self, kind: CellKind, key: bytes) -> Cell:
        """Returns a cell; empty if it was never written or has been evicted."""

    def write(self, updates: Iterable[Update]) -> None:
        """Writes all the cells, or raises CountersFull and writes none."""
