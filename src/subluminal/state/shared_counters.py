"""The `Counters` that all shims of a run share: three tables in the state file, and its level.

Bounds: 8,192 pairs and 1,024 windows, past which a new key raises CountersFull; 4,096 recent keys,
past which the least recently written key is dropped. Writing needs the run's lock; so does reading,
if a decision follows from the answer.
"""

import struct
from collections.abc import Callable, Iterable

from subluminal.contracts.counters import PAIR_INTS, Cell, CellKind, Update
from subluminal.state import layout
from subluminal.state.layout import WORD_BYTES
from subluminal.state.lock import RunLock
from subluminal.state.storage import StateFile
from subluminal.state.table import Table
from subluminal.state.taint import TaintWord

# Looked up once: in Python 3.11 access to an enum member costs as much as making a tuple.
_PAIR, _RECENT, _TAINT = CellKind.PAIR, CellKind.RECENT, CellKind.TAINT
_BUFFERS = layout.PAIR.slot_words - 2 * PAIR_INTS
"""Offset of the two buffers in a pair's slot, in words."""
_LEVEL = layout.W_TAINT
_unpack_pair = struct.Struct(f"={PAIR_INTS}q").unpack_from


class SharedCounters:
    """Implements `contracts.counters.Counters`."""

    __slots__ = (
        "_data",
        "_lock",
        "_pairs",
        "_reads",
        "_recent",
        "_tables",
        "_taint",
        "_words",
    )

    def __init__(self, file: StateFile, lock: RunLock, taint: TaintWord) -> None:
        self._lock = lock
        self._words = file.words
        self._data = file.data
        self._tables = [
            Table(file, place, lock.absent if place.shape.evicts else None)
            for place in layout.TABLES
        ]
        self._taint = taint
        self._reads: list[Callable[[bytes], Cell]] = [table.read for table in self._tables]
        self._reads.append(taint.cell)
        self._pairs = self._tables[_PAIR].known
        self._recent = self._tables[_RECENT]

    def read(self, kind: CellKind, key: bytes) -> Cell:
        """Returns a cell; the empty tuple if it was never written or has been evicted."""
        if kind is _PAIR:
            at = self._pairs.get(key)
            if at is not None:
                commit = self._words[at]
                if commit >> 1 == PAIR_INTS:  # `Table.read`, inlined
                    start = at + _BUFFERS + (commit & 1) * PAIR_INTS
                    return _unpack_pair(self._data, start * WORD_BYTES)
        return self._reads[kind](key)

    def write(self, updates: Iterable[Update]) -> None:
        """Writes all cells, or raises CountersFull and writes none.

        The usual case is inlined: pairs that already have a slot, and recent keys. Everything else
        goes through `_write_any`.
        """
        if not self._lock.held:
            self._lock.require()
        batch = updates if type(updates) is list else list(updates)
        words, pairs = self._words, self._pairs
        recent, absent = self._recent, self._lock.absent
        commits: dict[int, int] = {}
        recents: list[tuple[bytes, bytes]] = []
        try:
            for kind, key, cell in batch:
                if kind is _PAIR:
                    at = pairs[key]
                    first, second = cell
                    side = ~words[at] & 1
                    start = at + _BUFFERS + side * PAIR_INTS
                    words[start] = first
                    words[start + 1] = second
                    commits[at] = PAIR_INTS << 1 | side
                elif kind is _RECENT:
                    recents.append((key, recent.encode(key, cell)))
                elif kind is _TAINT:
                    commits[_LEVEL] = self._taint.lowered(cell[0], commits.get(_LEVEL))
                else:
                    raise KeyError
        except (KeyError, ValueError):
            self._write_any(batch)
            return
        # INVARIANT: so far only buffers that are not in force were written, so a failure up to here
        # changed nothing. Each of the stores below puts a new cell in force.
        for at, commit in commits.items():
            words[at] = commit
        for key, image in recents:
            end = absent.pop(key, 0)
            if end and len(image) <= recent.image_bytes:
                recent.insert(end, image)
            else:
                recent.write(key, image)

    def _write_any(self, updates: list[Update]) -> None:
        ready = []
        level = 0
        new: dict[Table, set[bytes]] = {}
        for kind, key, cell in updates:
            if kind is _TAINT:
                level = max(level, cell[0])
                continue
            table = self._tables[kind]
            ready.append((table, key, table.encode(key, cell)))
            if not (table.evicts or key in table.known or table.find(key)):
                new.setdefault(table, set()).add(key)
        for table, keys in new.items():
            table.make_room(len(keys))
        self._taint.lower(level)
        for table, key, image in ready:
            table.write(key, image)
