"""Finds the least recently written slot of a table, exactly and without a shared list.

Every write stamps its slot with the next number of the run. Each process sorts the stamps once and
then takes the slots in that order. A slot whose stamp has changed since then was written later than
every slot whose stamp has not. So a process skips the changed slots, and the order stays exact,
whatever other processes wrote. A linked list would need several stores for each write, and a kill
between them would tear it.
"""

from subluminal.state.layout import Place


class Eviction:
    """The order in which one table evicts its slots. Needs the run's lock."""

    __slots__ = ("_clock", "_end", "_queue", "_seen", "_stamps", "_words")

    def __init__(self, words: memoryview, place: Place) -> None:
        self._words = words
        self._clock = place.clock
        self._stamps = place.stamps
        self._end = place.stamps + place.shape.capacity
        self._queue: list[int] = []
        """slots in order of their stamps, the oldest last"""
        self._seen: list[int] = []
        """stamp of each slot when the queue was made"""

    def stamp(self, slot: int) -> None:
        """Marks a slot as the most recently written one."""
        words = self._words
        # INVARIANT: no stamp is given twice: the clock is stored before the stamp.
        words[self._clock] = now = words[self._clock] + 1
        words[self._stamps + slot] = now

    def oldest(self) -> int:
        """Returns the least recently written slot of a full table."""
        while True:
            while self._queue:
                slot = self._queue.pop()
                if self._words[self._stamps + slot] == self._seen[slot]:
                    return slot
            # This takes half a millisecond, once in as many evictions as the table has slots.
            self._seen = self._words[self._stamps : self._end].tolist()
            self._queue = sorted(range(len(self._seen)), key=self._seen.__getitem__, reverse=True)
