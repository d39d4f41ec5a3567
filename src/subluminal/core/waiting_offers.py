"""Whether another door may have offered a call: one comparison before each call while none has.

Every offer moves a number that all processes of the home share (`state.generation`). A host that
found no offer at all need not look again until the number has moved. This module imports little:
every shim loads it; `core.handovers` is loaded when there is an offer to look at.
"""

import os

from subluminal.config.places import Places
from subluminal.state.generation import WORD_BYTES, Generation, move

_seek, _END = os.lseek, os.SEEK_END


class WaitingOffers:
    """The number of one home's offers, as one process sees it."""

    def __init__(self, places: Places) -> None:
        self._path = _path(places)
        self._generation: Generation | None = None
        self._none_at: int | None = None
        """the number at which there was no offer; None if that is not known"""
        self._map()

    def may_be_some(self) -> bool:
        """Returns False if there is certainly no offer."""
        generation = self._generation
        return (
            generation is None
            # `Generation.is_whole`, inlined: every call passes here.
            or _seek(generation.fd, 0, _END) < WORD_BYTES
            or generation.words[0] != self._none_at
        )

    def number(self) -> int | None:
        """Returns the number, to be read before the offers are; None if it cannot be trusted."""
        if self._generation is None or not self._generation.is_whole():
            self._map()
        return None if self._generation is None else self._generation.words[0]

    def saw_none(self, number: int | None) -> None:
        """Notes that there was no offer after the number was read."""
        self._none_at = number

    def check(self) -> None:
        """Checks that the mapped file is still the one that other processes change."""
        if self._generation is not None and not self._generation.is_current():
            self._map()

    def close(self) -> None:
        """Lets go of the file."""
        self._generation = None

    def _map(self) -> None:
        self._none_at = None
        try:
            self._generation = Generation(self._path)
        except OSError:
            self._generation = None  # every call then looks for offers


def tell_of_offer(places: Places) -> None:
    """Says that there is a new offer. Raises OSError."""
    move(_path(places))


def _path(places: Places) -> str:
    return os.path.join(places.handovers, "generation")
