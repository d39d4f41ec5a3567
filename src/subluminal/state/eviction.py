"""Finds the least recently written slot of a table, exactly and without a shared list.

Every write stamps its slot with the next number of the run. A process sorts the stamps once and
then takes them in order: a slot whose stamp has changed since then was written later than all whose
stamp has not, so skipping the changed ones keeps the order exact, whatever other processes did
meanwhile. A linked list needs several stores for each write, between which a kill would tear it.
"""

from subluminal.state.layout import Place


class Eviction:
    """The order in which the slots of one table go. Needs the run's lock."""

    __slots__ = ("_clock", "_end", "_queue", "_seen", "_stamps", "_words")

    def __init__(self, words: memoryview, place: Place) -> None:
        self._words = words
        self._clock = place.clock
        self._stamps = place.stamps
        self._end = place.stamps + place.shape.capacity
        self._queue: list[int] = []
        """slots, the oldest last"""
        self._seen: list[int] = []
        """each slot's stamp when the queue was made"""

    def stamp(self, slot: int) -> None:
        """Makes a slot the most recently written one."""
        words = self._words
        # INVARIANT: no stamp is given twice; the clock moves before the stamp is used.
        words[self._clock] = now = words[self._clock] + 1
        words[self._stamps + slot] = now

    def oldest(self) -> int:
        """Returns the least recently written slot of a full table."""
        while True:
            while self._queue:
                slot = self._queue.pop()
                if self._words[self._stamps + slot] == self._seen[slot]:
                    return slot
            # Half a millisecond, once in as many evictions as the table has slots.
            self._seen = self._words[self._stamps : self._end].tolist()
            self._queue = sorted(range(len(self._seen)), key=self._seen.__getitem__, reverse=True)
