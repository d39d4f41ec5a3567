"""One table of cells in a state file: a hash table with chains, safe against a kill at any point.

    bucket head --> slot --> slot --> 0
    slot:  commit | next | key | buffer 0 | buffer 1        commit = length << 1 | buffer in force

A cell is a tuple of integers. It is in the buffer that `commit` names; the other buffer is free. A
cell that is too long for its slot is in the slot's spill block, which has two longer buffers. Slots
are numbered from 1, and 0 ends a chain. An *image* is the bytes of a slot from `commit` to the cell
in buffer 0.

Every function needs the run's lock, so no other process reads while one writes. But the writer may
be killed between any two stores. A store of one aligned word happens entirely or not at all, so
each change takes effect by one such store, its last:

    change     stores, in this order                       if killed before the last store
    replace    the free buffer; `commit`                   the old cell is still in force
    insert     `used` + 1; the image, whose `next` is 0;   the slot is in no chain; it stays unused
               the last link of the chain := the slot      until the table evicts it
    evict      the link to the slot := its `next`; then    the evicted cell is gone, as intended;
               as insert, without `used`                   the slot has the oldest stamp and is the
                                                           next to be evicted

So no chain leads to half a key or half a cell. No slot is in two chains or handed out twice,
because it is counted or unlinked before it is filled. If a process was killed during an eviction,
`_unlink` later meets a slot that is in no chain, and leaves it so. A batch of cells is not atomic:
`shared_counters` fills all buffers first, then stores the commit words one by one.

Slots and spill blocks get disk blocks before the first store into them: on a full disk, a store
into a hole of the file would be a SIGBUS.
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

_first_word = struct.Struct("=q").unpack_from
"""Reads the first word of a key. Keys are digests, so its bits serve as the hash."""


class Table:
    """Cells by key. `read`, `encode`, `write` and `insert` are on the path of every call."""

    __slots__ = (
        "_absent",
        "_before_slots",
        "_buffers",
        "_capacity",
        "_chain_bound",
        "_codecs",
        "_data",
        "_eviction",
        "_file",
        "_heads",
        "_image_of_one",
        "_images",
        "_inline_ints",
        "_key_bytes",
        "_mask",
        "_max_ints",
        "_place",
        "_shape",
        "_slot_words",
        "_used",
        "_words",
        "evicts",
        "image_bytes",
        "known",
    )

    def __init__(
        self, file: StateFile, place: Place, absent: dict[bytes, int] | None = None
    ) -> None:
        """Opens a table.

        `read` notes in `absent` each key that it did not find, with the end of its chain, so that
        `insert` need not search again. Taking the lock empties it.
        """
        shape = place.shape
        self._absent = absent
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
        self.image_bytes = (self._buffers + shape.inline_ints) * WORD_BYTES
        self._used = place.used
        self._capacity = shape.capacity
        self._max_ints = shape.max_ints
        self._chain_bound = range(shape.capacity + 1)
        self._eviction = Eviction(file.words, place) if shape.evicts else None
        self.evicts = shape.evicts
        self._codecs: dict[int, struct.Struct] = {}
        """codecs of cells, by number of integers"""
        self._images: dict[int, struct.Struct] = {}
        """codecs of images, by number of integers"""
        self._image_of_one = self._image(1)
        self.known: dict[bytes, int] = {}
        """First word of each key's slot; empty if the table evicts, as slots then change keys."""

    def read(self, key: bytes) -> Cell:
        """Returns the cell; the empty tuple if there is none."""
        at = self.known.get(key) or self._seek(key)
        if at < 0:
            if self._absent is not None:
                self._absent[key] = -at
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
        """Returns the image to `write`. Raises ValueError if the key or cell has a wrong length."""
        if len(key) != self._key_bytes:
            raise ValueError(f"a key of this kind has {self._key_bytes} bytes, not {len(key)}")
        length = len(cell)
        if length == 1:  # the usual case
            return self._image_of_one.pack(2, 0, key, cell[0])
        image = self._images.get(length) or self._image(length)
        return image.pack(length << 1, 0, key, *cell)

    def write(self, key: bytes, image: bytes) -> None:
        """Replaces or inserts a cell."""
        at = self.known.get(key) or self._seek(key)
        if at > 0:
            self._replace(at, image)
        elif len(image) <= self.image_bytes:
            self.insert(-at, image)
        else:
            self._replace(self.insert(-at, self.encode(key, ())), image)

    def _replace(self, at: int, image: bytes) -> None:
        words = self._words
        payload = image[self._buffers * WORD_BYTES :]
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
        # INVARIANT: this one store puts the new cell in force.
        words[at] = length << 1 | side
        if self._eviction is not None:
            self._eviction.stamp((at - self._before_slots) // self._slot_words - 1)

    def find(self, key: bytes) -> int:
        """Returns the first word of the key's slot; 0 if it has none."""
        return max(0, self._seek(key))

    def _seek(self, key: bytes) -> int:
        """Returns the first word of the key's slot, or minus the last link of its chain."""
        words = self._words
        first = _first_word(key)[0]
        link: int = self._heads + (first & self._mask)
        slot = words[link]
        if not slot:
            return -link
        for _ in self._chain_bound:
            if not 0 < slot <= self._capacity:
                raise self._damaged()
            at: int = self._before_slots + slot * self._slot_words
            # Different keys nearly always differ in their first word.
            if words[at + _KEY] == first and self._key_at(at) == key:
                if self._eviction is None:
                    self.known[key] = at
                return at
            link = at + _NEXT
            slot = words[link]
            if not slot:
                return -link
        raise self._damaged()

    def make_room(self, slots: int) -> None:
        """Allocates disk blocks for this many new keys. Raises CountersFull if they do not fit."""
        used = self._words[self._used]
        if used + slots > self._shape.capacity:
            raise self._full()
        self._back_slots(used + slots)

    def insert(self, end: int, image: bytes) -> int:
        """Gives a new key a slot at the end of its chain. Returns the first word of the slot.

        The image's cell must fit into a slot. New slots go to the end of a chain, so that the slot
        to evict is usually near its start.
        """
        words, eviction, link = self._words, self._eviction, 0
        used = words[self._used]
        if used < self._capacity:
            slot = self._unused_slot(used)
            at: int = self._before_slots + slot * self._slot_words
        elif eviction is None:
            raise self._full()
        else:
            slot = eviction.oldest() + 1
            at = self._before_slots + slot * self._slot_words
            link = self._unlink(slot, at)
            if end == at + _NEXT:
                end = link  # the evicted slot was the end of this chain
        start = at * WORD_BYTES
        # INVARIANT: the slot is in no chain until the second of these stores, so no chain leads to
        # half a key or half a cell, and no slot is in two chains. The `next` of an image is 0.
        self._data[start : start + len(image)] = image
        words[end] = slot
        if eviction is not None:
            eviction.stamp(slot - 1)
        if self._absent:
            self._move_ends(self._absent, at + _NEXT, link, end)
        return at

    def _move_ends(self, absent: dict[bytes, int], new: int, link: int, filled: int) -> None:
        """Corrects the noted ends of chains after a slot moved; `new` is the slot's `next` word."""
        # Not rare: the keys of one call's arguments share their first half and chain.
        for key, end in absent.items():
            if end == new:  # the chain that the slot left now ends one link earlier
                end = link
            if end == filled:
                end = new
            absent[key] = end

    def _unused_slot(self, used: int) -> int:
        self._back_slots(used + 1)
        # INVARIANT: counted before it is filled. If the process is killed in between, the slot is
        # lost until it is evicted, but never handed out twice.
        self._words[self._used] = used + 1
        return used + 1

    def _unlink(self, slot: int, at: int) -> int:
        """Takes a slot out of its chain, with one store. Returns the link that led to it.

        If a killed process has already taken it out, returns the last link of the chain.
        """
        words = self._words
        link: int = self._heads + (words[at + _KEY] & self._mask)
        for _ in self._chain_bound:
            here = words[link]
            if here == slot:
                words[link] = words[at + _NEXT]
                return link
            if not here:
                return link
            if not 0 < here <= self._capacity:
                break
            link = self._before_slots + here * self._slot_words + _NEXT
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

    def _key_at(self, at: int) -> bytes:
        start = (at + _KEY) * WORD_BYTES
        return self._data[start : start + self._key_bytes]

    def _spilled(self, at: int, length: int, side: int) -> int:
        """Returns the first word of a buffer in the slot's spill block."""
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

    def _image(self, length: int) -> struct.Struct:
        if length > self._max_ints:
            raise ValueError(f"a cell of this kind has at most {self._max_ints} integers")
        image = self._images[length] = struct.Struct(f"=2q{self._key_bytes}s{length}q")
        return image

    def _full(self) -> CountersFull:
        return CountersFull(f"the run already has {self._shape.capacity} counters of this kind")

    def _damaged(self) -> StateUnusable:
        return damaged(self._file.path, "its counters contradict each other")
