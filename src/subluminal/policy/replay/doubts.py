"""Counters of which some are not certain: what they hold depends on what is not on record."""

from collections.abc import Iterable, Sequence

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.policy.counters import MemoryCounters


class DoubtfulCounters:
    """A run's counters. `was_asked` tells whether an evaluation read a doubtful one."""

    def __init__(self) -> None:
        self._counters = MemoryCounters()
        self._doubtful: set[bytes] = set()
        self._all = False
        self.was_asked = False
        self.read = self._counters.read
        self.write = self._counters.write

    def doubt(self, alternatives: Sequence[list[Update]]) -> None:
        """Doubts every cell that not all of the alternatives leave alike."""
        first = _cells(alternatives[0])
        for each in alternatives[1:]:
            cells = _cells(each)
            self._add(
                key
                for kind, key in first.keys() | cells.keys()
                if first.get((kind, key)) != cells.get((kind, key))
            )

    def doubt_updates(self, updates: Iterable[Update]) -> None:
        """Doubts every cell that is written here."""
        self._add(key for _, key, _ in updates)

    def doubt_everything(self) -> None:
        """Calls are missing from the record, or nobody knows what one of them did."""
        self._all = True
        self.read = self._read_noting

    def _add(self, keys: Iterable[bytes]) -> None:
        self._doubtful.update(keys)
        if self._doubtful:
            self.read = self._read_noting

    def _read_noting(self, kind: CellKind, key: bytes) -> Cell:
        if self._all or key in self._doubtful:
            self.was_asked = True
        return self._counters.read(kind, key)


def _cells(updates: list[Update]) -> dict[tuple[CellKind, bytes], Cell]:
    return {(kind, key): cell for kind, key, cell in updates}
