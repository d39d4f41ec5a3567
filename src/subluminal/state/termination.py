"""The latch that terminates a run for all its shims: set once, read before every call, no lock."""

from binascii import crc32
from typing import NamedTuple

from subluminal.state import layout
from subluminal.state.errors import damaged
from subluminal.state.storage import StateFile

_START = layout.W_TERMINATION * layout.WORD_BYTES
_SET = 1 << 32
_TRIES = 1_000


class Termination(NamedTuple):
    """Why a run was terminated."""

    code: str
    message: str


class TerminationLatch:
    """The latch word and the text of the reason.

    The word is 0, or `length << 33 | 1 << 32 | CRC` of the text, and is stored after the text. Some
    CPUs let another core see the word before the text, and readers have no lock. So a reader reads
    the text again until its CRC is the one in the word.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file

    def set(self, code: str, message: str) -> bool:
        """Terminates the run. Returns False if it was terminated before: the first reason stays.

        Needs the lock.
        """
        if self._file.words[layout.W_TERMINATED]:
            return False
        text = f"{code.replace(chr(0), '')}\0{message}".encode("utf-8", "replace")
        text = text[: layout.TERMINATION_BYTES]
        self._file.data[_START : _START + len(text)] = text
        self._file.words[layout.W_TERMINATED] = len(text) << 33 | _SET | crc32(text)
        return True

    def get(self) -> Termination | None:
        """Returns why the run was terminated; None if it was not. Does not need the lock."""
        latch = self._file.words[layout.W_TERMINATED]
        return self._text(latch) if latch else None

    def _text(self, latch: int) -> Termination:
        for _ in range(_TRIES):
            text = self._file.data[_START : _START + (latch >> 33)]
            if crc32(text) == latch & (_SET - 1):
                code, _, message = text.decode("utf-8", "ignore").partition("\0")
                return Termination(code, message)
        raise damaged(self._file.path, "the reason for its termination is unreadable")
