"""The level of a run in its state file: a word, two marks, and texts that say why.

    word    seq << 8 | 1 << 4 once a person set it | rank + 1; 0 while nothing has lowered the run
    marks   seq + 1 if the run was lowered to TRUSTED, to UNTRUSTED, without its lock; 0 if not

A level is lowered by one store, so a kill can neither tear nor raise it. The text is written before
that store; if it is torn, its CRC says so, and the level holds without a text. A word that nobody
can have written counts as the lowest level.

Changing the word needs the run's lock. A call that leaves while another process holds the lock sets
a mark instead. Each mark is one word with one meaning, so stores that race do no harm. The level is
the lowest of word and marks, and only a person's word clears the marks.
"""

from binascii import crc32
from typing import NamedTuple

from subluminal.contracts.counters import Cell
from subluminal.contracts.vocabulary import TAINT_RANK, Taint, TaintCause
from subluminal.state import layout
from subluminal.state.storage import StateFile

_LEVELS = tuple(Taint)
_LOWEST = TAINT_RANK[Taint.UNTRUSTED]
_BY_PERSON = 16
_SEQ_BITS = 8
_LOW_BITS = (1 << _SEQ_BITS) - 1
_RANKS = {person | (rank + 1): rank for rank in range(len(_LEVELS)) for person in (0, _BY_PERSON)}
"""The low bits that a word may have, each with its rank."""
_TRUSTED_MARK, _UNTRUSTED_MARK = layout.W_TAINT_MARKS, layout.W_TAINT_MARKS + 1

MARKED = "lowered while its state was locked"
DAMAGED = "the record of its level was damaged"


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
        rank = self.rank()
        return (rank,) if rank else ()

    def rank(self) -> int:
        """Returns the rank of the level."""
        words = self._words
        if words[_UNTRUSTED_MARK]:
            return _LOWEST
        word = words[layout.W_TAINT]
        return max(_rank(word) if word else 0, 1 if words[_TRUSTED_MARK] else 0)

    def mark(self, rank: int) -> None:
        """Lowers the run without the lock; a level that is as low already stays."""
        if rank > self.rank():
            self._words[layout.W_TAINT_MARKS + rank - 1] = self._words[layout.W_SEQ] + 1

    def lower(self, rank: int) -> None:
        """Lowers the run; a level that is as low already stays. Needs the lock."""
        self._words[layout.W_TAINT] = self.lowered(rank)

    def lowered(self, rank: int, word: int | None = None) -> int:
        """Returns the word for a run that is lowered from `word`, by default the one in force."""
        word = self._words[layout.W_TAINT] if word is None else word
        rank = min(rank, _LOWEST)
        if rank <= max(_rank(word), self.rank()):
            return word
        return self._words[layout.W_SEQ] << _SEQ_BITS | word & _BY_PERSON | (rank + 1)

    def start(self, rank: int, source: tuple[str, ...]) -> None:
        """Lowers the run as its start says, unless a person has set its level since."""
        if self.starts_at(rank):
            self.note(rank, source)
            self.lower(rank)

    def starts_at(self, rank: int) -> bool:
        """Whether a start at this level lowers the run: a person's word goes before it."""
        return rank > self.rank() and not self._words[layout.W_TAINT] & _BY_PERSON

    def put(self, rank: int) -> None:
        """Sets the level as a person says, up or down. Needs the lock."""
        words = self._words
        of_person = words[layout.W_SEQ] << _SEQ_BITS | _BY_PERSON
        if words[_TRUSTED_MARK] or words[_UNTRUSTED_MARK]:
            # A kill between these stores must not leave a level that nobody chose.
            words[layout.W_TAINT] = of_person | (_LOWEST + 1)
            words[_TRUSTED_MARK] = words[_UNTRUSTED_MARK] = 0
        words[layout.W_TAINT] = of_person | (rank + 1)

    def is_damaged(self) -> bool:
        """Whether nobody can have written the word."""
        word = self._words[layout.W_TAINT]
        return word != 0 and not _is_written(word)

    def mend(self) -> None:
        """Replaces a damaged word by the lowest level, with its reason. Needs the lock."""
        self.note(_LOWEST, _because(DAMAGED))
        self._words[layout.W_TAINT] = self._words[layout.W_SEQ] << _SEQ_BITS | (_LOWEST + 1)

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
        words = self._words
        word, last_seq = words[layout.W_TAINT], words[layout.W_SEQ]
        rank = self.rank()
        if rank > _rank(word):
            marked_seq = words[layout.W_TAINT_MARKS + rank - 1] - 1
            return TaintState(_LEVELS[rank], _within(marked_seq, last_seq), _because(MARKED))
        if self.is_damaged():
            return TaintState(_LEVELS[rank], last_seq, _because(DAMAGED))
        seq = _within(word >> _SEQ_BITS, last_seq)
        return TaintState(_LEVELS[rank], seq, self._source(rank) if rank else _top_source(word))

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
    return _RANKS[word & _LOW_BITS] if _is_written(word) else _LOWEST


def _is_written(word: int) -> bool:
    return word > 0 and word & _LOW_BITS in _RANKS


def _top_source(word: int) -> tuple[str, ...]:
    """Returns why a run is SYSTEM: there is no text for that level."""
    return (TaintCause.COMMAND,) if word & _BY_PERSON else ()


def _within(seq: int, last_seq: int) -> int:
    """Returns the number of a call, or 0 if the run has not made so many."""
    return seq if 0 <= seq <= last_seq else 0


def _because(reason: str) -> tuple[str, ...]:
    return (TaintCause.RULE, "", "", "", reason)


def _start(rank: int) -> int:
    first = layout.TAINT_SOURCES * layout.WORD_BYTES
    return first + (rank - 1) * layout.TAINT_SOURCE_BYTES
