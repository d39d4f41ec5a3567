"""The `Counters` of a run as its shims share them: three tables in the state file (D4).

Bounds: 8,192 pairs and 1,024 windows, past which a new key is CountersFull; 4,096 recent keys, of
which the least recently written goes. Reading wants the lock too, if the answer is to be acted on.
"""

from collections.abc import Iterable

from subluminal.contracts.counters import Cell, CellKind, Update
from subluminal.state import layout
from subluminal.state.lock import RunLock
from subluminal.state.storage import StateFile
from subluminal.state.table import Table


class SharedCounters:
    """Implements `contracts.counters.Counters`."""

    def __init__(self, file: StateFile, lock: RunLock) -> None:
        self._lock = lock
        self._tables = [Table(file, place) for place in layout.TABLES]

    def read(self, kind: CellKind, key: bytes) -> Cell:
        """Returns a cell; empty if it was never written or has been evicted."""
        return self._tables[kind].read(key)

    def write(self, updates: Iterable[Update]) -> None:
        """Writes all the cells, or raises CountersFull and writes none."""
        self._lock.require()
        ready = []
        new: dict[Table, set[bytes]] = {}
        for kind, key, cell in updates:
            table = self._tables[kind]
            ready.append((table, key, table.encode(key, cell)))
            if not (table.evicts or table.knows(key) or table.find(key)):
                new.setdefault(table, set()).add(key)
        for table, keys in new.items():
            table.make_room(len(keys))
        for table, key, payload in ready:
            table.write(key, payload)
