"""What a policy remembers of a run, and the one interface to every store of it (shared-runs).

`policy` reads cells and returns updates; a store (in memory, or shared by the shims of a run)
writes them. A cell is a short tuple of 64-bit integers; the empty tuple was never written.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Protocol

Cell = tuple[int, ...]

PAIR_INTS = 2
WINDOW_INTS = 128
"""64 exact entries, or 64 buckets of (index, count)."""


class CellKind(IntEnum):
    """Where a cell lives, which settles its size and what happens when there are too many."""

    PAIR = 0
    """budgets and buckets: at most 2 integers, never evicted; key of 16 bytes"""
    WINDOW = 1
    """error and latency windows: at most 128 integers, never evicted; key of 16 bytes"""
    RECENT = 2
    """dedupe and repeat keys: at most 128 integers, the least recently written of 4,096 goes
    first; key of 32 bytes"""


Update = tuple[CellKind, bytes, Cell]
"""One cell's new contents. A plain tuple: several are made for every call."""


class CountersFull(Exception):
    """A run has more counters than MAX_COUNTERS. Nothing was written."""


class Counters(Protocol):
    """A store of cells. Callers hold whatever lock makes read, evaluate, write one step."""

    def read(self, kind: CellKind, key: bytes) -> Cell:
        """Returns a cell; empty if it was never written or has been evicted."""

    def write(self, updates: Iterable[Update]) -> None:
        """Writes all the cells, or raises CountersFull and writes none."""
