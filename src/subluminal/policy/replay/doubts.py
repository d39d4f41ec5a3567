"""Counters of which some are uncertain, because they depend on what the record does not contain."""

from collections.abc import Iterable, Sequence

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.policy.counters import MemoryCounters


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
                key
                for kind, key in first.keys() | cells.keys()
                if first.get((kind, key)) != cells.get((kind, key))
            )

    def doubt_updates(self, updates: Iterable[Update]) -> None:
        """Marks every cell as uncertain that these updates write."""
        self._add(key for _, key, _ in updates)

    def doubt_everything(self) -> None:
        """Marks all cells as uncertain: calls are missing, or the effect of one is unknown."""
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
