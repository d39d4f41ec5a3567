"""The level of a run in its state file: one word, and a text for each level that says why.

    word    seq << 8 | 1 << 4 once a person set it | rank + 1; 0 while nothing has lowered the run

A level is lowered by one store, so a kill can neither tear nor raise it. The text is written before
that store; if it is torn, its CRC says so, and the level holds without a text. A word that nobody
can have written counts as the lowest level. Lowering needs the run's lock.
"""

from binascii import crc32
from typing import NamedTuple

from subluminal.contracts.counters import Cell
from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.state import layout
from subluminal.state.storage import StateFile

_LEVELS = tuple(Taint)
_LOWEST = TAINT_RANK[Taint.UNTRUSTED]
_RANK_MASK = 15
_BY_PERSON = 16
_SEQ_BITS = 8


class TaintState(NamedTuple):
    """The level of a run, and since when."""

    level: Taint
    seq: int
    """number of the call since which the run has this level; 0 if it started so"""
    source: tuple[str, ...]
    """why: what changed the level, and words that `core` put there; empty if not known"""


class TaintWord:
    """The level of one run."""

    def __init__(self, file: StateFile) -> None:
        self._words = file.words
        self._data = file.data

    def cell(self, _key: bytes = b"") -> Cell:
        """Returns the level as a cell of the run's counters."""
        word = self._words[layout.W_TAINT]
        return (_rank(word),) if word else ()

    def rank(self) -> int:
        """Returns the rank of the level."""
        return _rank(self._words[layout.W_TAINT])

    def lower(self, rank: int) -> None:
        """Lowers the run; a level that is as low already stays. Needs the lock."""
        self._words[layout.W_TAINT] = self.lowered(rank)

    def lowered(self, rank: int, word: int | None = None) -> int:
        """Returns the word for a run that is lowered from `word`, by default the one in force."""
        word = self._words[layout.W_TAINT] if word is None else word
        rank = min(rank, _LOWEST)
        if rank <= _rank(word):
            return word
        return self._words[layout.W_SEQ] << _SEQ_BITS | word & _BY_PERSON | (rank + 1)

    def start(self, rank: int, source: tuple[str, ...]) -> None:
        """Lowers the run as its start says, unless a person has set its level since."""
        if rank > self.rank() and not self._words[layout.W_TAINT] & _BY_PERSON:
            self.note(rank, source)
            self.lower(rank)

    def put(self, rank: int) -> None:
        """Sets the level as a person says, up or down. Needs the lock."""
        seq = self._words[layout.W_SEQ]
        self._words[layout.W_TAINT] = seq << _SEQ_BITS | _BY_PERSON | (rank + 1)

    def note(self, rank: int, source: tuple[str, ...]) -> None:
        """Writes why a run has a level. Call it before the level is lowered; needs the lock."""
        if not rank:
            return
        text = "\0".join(part.replace("\0", " ") for part in source).encode("utf-8", "replace")
        text = text[: layout.TAINT_SOURCE_BYTES]
        start = _start(rank)
        self._data[start : start + len(text)] = text
        self._words[layout.W_TAINT_SOURCES + rank - 1] = len(text) << 32 | crc32(text)

    def state(self) -> TaintState:
        """Returns the level with its reason. A word that is damaged is UNTRUSTED."""
        word = self._words[layout.W_TAINT]
        rank = _rank(word)
        seq = max(0, word >> _SEQ_BITS)
        return TaintState(_LEVELS[rank], seq, self._source(rank) if rank else ())

    def _source(self, rank: int) -> tuple[str, ...]:
        word = self._words[layout.W_TAINT_SOURCES + rank - 1]
        length = word >> 32
        if not 0 < length <= layout.TAINT_SOURCE_BYTES:
            return ()
        start = _start(rank)
        text = bytes(self._data[start : start + length])
        if crc32(text) != word & (1 << 32) - 1:
            return ()
        return tuple(text.decode("utf-8", "replace").split("\0"))


def _rank(word: int) -> int:
    if not word:
        return 0
    rank = (word & _RANK_MASK) - 1
    return rank if 0 <= rank <= _LOWEST and word > 0 else _LOWEST


def _start(rank: int) -> int:
    first = layout.TAINT_SOURCES * layout.WORD_BYTES
    return first + (rank - 1) * layout.TAINT_SOURCE_BYTES
