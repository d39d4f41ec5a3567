"""Counters of which some are uncertain, because they depend on what the record does not contain."""

from collections.abc import Iterable, Sequence

from subluminal.contracts.counters import TAINT_KEY, Cell, CellKind, Update
from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.policy.counters import MemoryCounters

_LOWEST = (TAINT_RANK[Taint.UNTRUSTED],)


class DoubtfulCounters:
    """The counters of a run. `was_asked` is set when an evaluation reads an uncertain one."""

    def __init__(self) -> None:
        self._counters = MemoryCounters()
        self._doubtful: set[bytes] = set()
        self._all = False
        self.was_asked = False
        self.read = self._counters.read
        self.write = self._counters.write

    def doubt(self, alternatives: Sequence[list[Update]]) -> None:
        """Marks every cell as uncertain that the alternatives leave with different contents."""
        first = _cells(alternatives[0])
        for each in alternatives[1:]:
            cells = _cells(each)
            self._add(
                (kind, key)
                for kind, key in first.keys() | cells.keys()
                if first.get((kind, key)) != cells.get((kind, key))
            )

    def doubt_updates(self, updates: Iterable[Update]) -> None:
        """Marks every cell as uncertain that these updates write."""
        self._add((kind, key) for kind, key, _ in updates)

    def doubt_everything(self) -> None:
        """Marks all cells as uncertain: calls are missing, or the effect of one is unknown."""
        self._all = True
        self.read = self._read_noting

    def set_level(self, rank: int) -> None:
        """Sets the level of the run, as a person did; from then on it is certain."""
        self._counters.raise_to(rank)
        self._doubtful.discard(TAINT_KEY)

    def _add(self, cells: Iterable[tuple[CellKind, bytes]]) -> None:
        self._doubtful.update(key for kind, key in cells if not self._is_lowest(kind, key))
        if self._doubtful:
            self.read = self._read_noting

    def _is_lowest(self, kind: CellKind, key: bytes) -> bool:
        """Whether this is the level of the run, and nothing that is missing can lower it."""
        return kind is CellKind.TAINT and self._counters.read(kind, key) == _LOWEST

    def _read_noting(self, kind: CellKind, key: bytes) -> Cell:
        if key in self._doubtful or (self._all and not self._is_lowest(kind, key)):
            self.was_asked = True
        return self._counters.read(kind, key)


def _cells(updates: list[Update]) -> dict[tuple[CellKind, bytes], Cell]:
    found: dict[tuple[CellKind, bytes], Cell] = {}
    for kind, key, cell in updates:
        # Several layers may lower the run: the lowest level stays.
        is_level = kind is CellKind.TAINT
        found[kind, key] = max(cell, found.get((kind, key), ())) if is_level else cell
    return found
