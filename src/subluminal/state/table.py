"""One table of cells in a state file: a hash table with chains, safe against a kill at any point.

A slot is `commit | next | key | buffer 0 | buffer 1`; a chain of slots starts at each bucket head.
A cell longer than its slot's buffers lies in the two buffers of the slot's spill block instead.
`commit` is (length << 1 | buffer): the other buffer is written first, then this one word.
Slots count from 1; 0 is nothing. Everything here needs the run's lock.
"""

import struct

from subluminal.contracts.counters import Cell, CountersFull
from subluminal.state.errors import StateUnusable, damaged
from subluminal.state.eviction import Eviction
from subluminal.state.layout import WORD_BYTES, Place
from subluminal.state.storage import StateFile

_BACKED_AT_ONCE_BYTES = 16_384
_NEXT = 1
_KEY = 2


class Table:
    """Cells by key. `read`, `encode` and `write` are the hot path, and so a little flat."""

    def __init__(self, file: StateFile, place: Place) -> None:
        shape = place.shape
        self._file = file
        self._words = file.words
        self._data = file.data
        self._place = place
        self._shape = shape
        self._heads = place.heads
        self._mask = shape.buckets - 1
        self._key_bytes = shape.key_bytes
        self._inline_ints = shape.inline_ints
        self._buffers = _KEY + shape.key_bytes // WORD_BYTES
        self._slot_words = shape.slot_words
        self._before_slots = place.slots - shape.slot_words
        self._capacity = shape.capacity
        self._max_ints = shape.max_ints
        self._chain_bound = range(shape.capacity + 1)
        self._eviction = Eviction(file.words, place) if shape.evicts else None
        self.evicts = shape.evicts
        self._codecs: dict[int, struct.Struct] = {}
        """by the number of integers"""
        self._known: dict[bytes, int] = {}
        """Where keys are, if the table never evicts: then a slot keeps its key for ever."""

    def read(self, key: bytes) -> Cell:
        """Returns the cell, or the empty tuple."""
        at = self._known.get(key) or self.find(key)
        if not at:
            return ()
        commit = self._words[at]
        length = commit >> 1
        if length <= self._inline_ints:
            start = at + self._buffers + (commit & 1) * self._inline_ints
        else:
            start = self._spilled(at, length, commit & 1)
        codec = self._codecs.get(length) or self._codec(length)
        return codec.unpack_from(self._data, start * WORD_BYTES)

    def encode(self, key: bytes, cell: Cell) -> bytes:
        """Returns the bytes to `write`. Fails if they can never be stored: a bug of the caller."""
        if len(key) != self._key_bytes:
            raise ValueError(f"a key of this kind has {self._key_bytes} bytes, not {len(key)}")
        length = len(cell)
        if length > self._max_ints:
            raise ValueError(f"a cell of this kind has at most {self._max_ints} integers")
        return (self._codecs.get(length) or self._codec(length)).pack(*cell)

    def write(self, key: bytes, payload: bytes) -> None:
        """Replaces a cell. A process killed in here leaves the old cell or the new one."""
        at = self._known.get(key) or self.find(key) or self._insert(key)
        words = self._words
        length = len(payload) // WORD_BYTES
        old = words[at]
        side = ~old & 1
        if length <= self._inline_ints:
            start = (at + self._buffers + side * self._inline_ints) * WORD_BYTES
        else:
            if self._inline_ints >= old >> 1:
                self._file.back(self._spilled(at, length, 0), self._shape.spill_words)
            start = self._spilled(at, length, side) * WORD_BYTES
        self._data[start : start + len(payload)] = payload
        # INVARIANT: this one store is what makes the new cell the cell.
        words[at] = length << 1 | side
        if self._eviction is not None:
            self._eviction.stamp((at - self._before_slots) // self._slot_words - 1)

    def knows(self, key: bytes) -> bool:
        """Whether the key has a slot of its own for ever."""
        return key in self._known

    def find(self, key: bytes) -> int:
        """Returns the word where the key's slot starts, or 0."""
        words, data, key_bytes = self._words, self._data, self._key_bytes
        slot = words[self._heads + ((key[0] | key[1] << 8) & self._mask)]
        for _ in self._chain_bound:
            if not slot:
                return 0
            if not 0 < slot <= self._capacity:
                raise self._damaged()
            at = self._before_slots + slot * self._slot_words
            start = (at + _KEY) * WORD_BYTES
            if data[start : start + key_bytes] == key:
                if not self.evicts:
                    self._known[key] = at
                return at
            slot = words[at + _NEXT]
        raise self._damaged()

    def make_room(self, slots: int) -> None:
        """Makes sure that as many new keys fit. Raises CountersFull if they never will."""
        used = self._words[self._place.used]
        if used + slots > self._shape.capacity:
            raise self._full()
        self._back_slots(used + slots)

    def _insert(self, key: bytes) -> int:
        """Gives a key an empty slot."""
        words = self._words
        slot = self._free_slot()
        at = self._slot_at(slot)
        # INVARIANT: the slot is in no chain until the last of these stores, so that no chain ever
        # leads to half a key and no slot is ever in two chains.
        words[at] = 0
        start = (at + _KEY) * WORD_BYTES
        self._data[start : start + self._key_bytes] = key
        head = self._head(key)
        words[at + _NEXT] = words[head]
        words[head] = slot
        return at

    def _free_slot(self) -> int:
        """Takes a slot out of reach: one never used, else the least recently written."""
        words = self._words
        used: int = words[self._place.used]
        if used < self._shape.capacity:
            self._back_slots(used + 1)
            # INVARIANT: counted before it is filled. A process killed in between loses the slot
            # (until it is evicted) rather than have it handed out twice.
            words[self._place.used] = used + 1
            return used + 1
        if self._eviction is None:
            raise self._full()
        slot = self._eviction.oldest() + 1
        self._unlink(slot)
        return slot

    def _unlink(self, slot: int) -> None:
        """Takes a slot out of its chain, with one store. No-op if a killed process already did."""
        words = self._words
        at = self._slot_at(slot)
        start = (at + _KEY) * WORD_BYTES
        link = self._head(self._data[start : start + self._key_bytes])
        for _ in self._chain_bound:
            here = words[link]
            if here == slot:
                words[link] = words[at + _NEXT]
                return
            if not here:
                return
            link = self._slot_at(here) + _NEXT
        raise self._damaged()

    def _back_slots(self, needed: int) -> None:
        backed = self._words[self._place.backed]
        if needed <= backed:
            return
        step = _BACKED_AT_ONCE_BYTES // WORD_BYTES // self._slot_words
        target = min(self._shape.capacity, max(needed, backed + step))
        start = self._place.slots + backed * self._slot_words
        self._file.back(start, (target - backed) * self._slot_words)
        self._words[self._place.backed] = target

    def _head(self, key: bytes) -> int:
        # Keys are digests: any of their bytes are as good as a hash.
        return self._heads + ((key[0] | key[1] << 8) & self._mask)

    def _slot_at(self, slot: int) -> int:
        if not 0 < slot <= self._shape.capacity:
            raise self._damaged()
        return self._before_slots + slot * self._slot_words

    def _spilled(self, at: int, length: int, side: int) -> int:
        """Returns the word where one of the two buffers for a long cell starts."""
        shape = self._shape
        if length > shape.max_ints:
            raise self._damaged()
        index = (at - self._place.slots) // self._slot_words
        return self._place.spill + index * shape.spill_words + side * shape.max_ints

    def _codec(self, length: int) -> struct.Struct:
        if not 0 <= length <= self._shape.max_ints:
            raise self._damaged()
        codec = self._codecs[length] = struct.Struct(f"={length}q")
        return codec

    def _full(self) -> CountersFull:
        return CountersFull(f"the run has {self._shape.capacity} counters of this kind already")

    def _damaged(self) -> StateUnusable:
        return damaged(self._file.path, "its counters contradict each other")
