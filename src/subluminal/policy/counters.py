"""Counters in memory, for replay, `sub policy test` and `sub policy explain`."""

from collections.abc import Iterable

from subluminal.contracts.counters import TAINT_KEY, Cell, CellKind, CountersFull, Update
from subluminal.contracts.limits import MAX_COUNTERS, MAX_RECENT_KEYS

_PAIR, _WINDOW, _RECENT = CellKind.PAIR, CellKind.WINDOW, CellKind.RECENT
_TAINT = CellKind.TAINT


class MemoryCounters:
    """A store of counters with the same bounds as the one that the shims of a run share."""

    def __init__(self) -> None:
        self._cells: tuple[dict[bytes, Cell], ...] = ({}, {}, {}, {})

    def read(self, kind: CellKind, key: bytes) -> Cell:
        """Returns a cell; empty if it was never written or has been evicted."""
        return self._cells[kind].get(key, ())

    def write(self, updates: Iterable[Update]) -> None:
        """Writes all the cells, or raises CountersFull and writes none."""
        batch = list(updates)
        self._check_room(batch)
        for kind, key, cell in batch:
            cells = self._cells[kind]
            if kind is _RECENT:
                cells.pop(key, None)  # a key that is written becomes the most recent
                if len(cells) >= MAX_RECENT_KEYS:
                    del cells[next(iter(cells))]
            elif kind is _TAINT:
                cell = max(cell, cells.get(key, ()))  # the lowest level stays
            cells[key] = cell

    def raise_to(self, rank: int) -> None:
        """Sets the level of the run, as a person does with `sub taint set`."""
        self._cells[_TAINT][TAINT_KEY] = (rank,)

    def _check_room(self, batch: list[Update]) -> None:
        for kind in (_PAIR, _WINDOW):
            cells = self._cells[kind]
            if len(cells) + len(batch) <= MAX_COUNTERS:
                continue
            new = {key for each, key, _ in batch if each is kind and key not in cells}
            if len(cells) + len(new) > MAX_COUNTERS:
                raise CountersFull
