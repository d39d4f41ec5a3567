"""A text in a state file that is set once, under the run's lock, and read without it."""

from binascii import crc32

from subluminal.state import layout
from subluminal.state.errors import damaged
from subluminal.state.storage import StateFile

_SET = 1 << 32
_TRIES = 1_000


class TextLatch:
    """A text, and the word that says whether the text is there.

    The word is 0, or `length << 33 | 1 << 32 | CRC` of the text, and is stored after the text. Some
    CPUs let another core see the word before the text, and readers have no lock. So a reader reads
    the text again until its CRC is the one in the word.
    """

    def __init__(self, file: StateFile, word: int, *, start: int, size_bytes: int) -> None:
        """`word` is the number of the word, `start` that of the first word of the text."""
        self._file = file
        self._word = word
        self._start = start * layout.WORD_BYTES
        self._size_bytes = size_bytes

    def set(self, text: bytes) -> bool:
        """Sets the text, cut to its size. Returns False if it was set before: the first stays.

        Needs the lock.
        """
        if self._file.words[self._word]:
            return False
        text = text[: self._size_bytes]
        self._file.data[self._start : self._start + len(text)] = text
        self._file.words[self._word] = len(text) << 33 | _SET | crc32(text)
        return True

    def get(self) -> bytes | None:
        """Returns the text; None if it was not set. Does not need the lock."""
        latch = self._file.words[self._word]
        return self._text(latch) if latch else None

    def _text(self, latch: int) -> bytes:
        for _ in range(_TRIES):
            text = self._file.data[self._start : self._start + (latch >> 33)]
            if crc32(text) == latch & (_SET - 1):
                return text
        raise damaged(self._file.path, "a text in its header is unreadable")
