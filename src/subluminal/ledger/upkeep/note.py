"""The note of checkpoints beside the keys: it knows what the ledger signed, if the ledger does not.

One line for each checkpoint, `NUMBER DIGEST SIGNATURE`, only ever appended, after the checkpoint is
safe in the ledger. So the ledger may be one checkpoint ahead of the note, after a kill, and never
behind it. Early versions noted first, and took a number twice after a kill: of two of their lines
with the same number, the last one counts.
"""

import os
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.ledger.upkeep.state_files import read_state_file

_EARLY_SIGNATURE_BYTES = 32
_MAX_BYTES = 1 << 30


class Noted(NamedTuple):
    """One line of the note."""

    number: int
    digest: bytes
    signature: bytes

    @property
    def is_early(self) -> bool:
        """Whether an early version wrote the line, with an HMAC for a signature."""
        return len(self.signature) == _EARLY_SIGNATURE_BYTES

    def line(self) -> bytes:
        return f"{self.number} {self.digest.hex()} {self.signature.hex()}\n".encode()


class Note(NamedTuple):
    """All lines of the note, by number, and what is wrong with their order."""

    lines: dict[int, Noted]
    problem: tuple[int, str] | None
    """number of the first line that is out of order, from 1, and what is wrong with it"""

    @property
    def last(self) -> Noted | None:
        """The line with the highest number."""
        return self.lines[max(self.lines)] if self.lines else None


def note_path(places: Places) -> str:
    return os.path.join(places.state, "ledger.checkpoints")


def read_note(places: Places) -> Note:
    """Reads the note. It is empty if there is no file."""
    texts = (read_state_file(note_path(places), _MAX_BYTES) or b"").split(b"\n")
    note = Note({}, None)
    last: Noted | None = None
    for place, text in enumerate(texts, 1):
        line = _parsed(text)
        if line is None:
            if not _is_torn(text, texts[place:]) and note.problem is None:
                note = note._replace(problem=(place, "it is not a line of the note"))
            continue
        if note.problem is None:
            message = _misplaced(line, last)
            if message is not None:
                note = note._replace(problem=(place, message))
        note.lines[line.number] = line
        last = line
    return note


def append_note(places: Places, made: Noted) -> None:
    """Appends a line, and waits until it is on disk."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    handle = os.open(note_path(places), flags, 0o600)
    try:
        size = os.fstat(handle).st_size
        is_torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        os.write(handle, b"\n" + made.line() if is_torn else made.line())
        os.fsync(handle)
    finally:
        os.close(handle)


def _parsed(text: bytes) -> Noted | None:
    words = text.split()
    try:
        number, digest, signature = words
        return Noted(int(number), bytes.fromhex(digest.decode()), bytes.fromhex(signature.decode()))
    except ValueError:
        return None


def _is_torn(text: bytes, after: list[bytes]) -> bool:
    """Whether a line was cut off by a full disk, and written again whole."""
    return not text or not after or after[0].startswith(text)


def _misplaced(line: Noted, last: Noted | None) -> str | None:
    before = 0 if last is None else last.number
    if line.is_early and last is not None and not last.is_early:
        return "an early version signed it, after a newer one"
    if line.number == before + 1 or (last is not None and last.is_early and line.number == before):
        return None
    if line.number > before + 1:
        return f"it is checkpoint {line.number}, and checkpoint {before + 1} is missing before it"
    return f"it is checkpoint {line.number}, after checkpoint {before}"
