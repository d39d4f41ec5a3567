"""Reads journals that may still grow: whole lines only, bounded memory (journal-first).

Used by the ledger, and by commands that watch without a daemon. Does not know what a line means.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.journal.files import SUFFIX

MAX_LINE_BYTES = 8_388_608
"""An event with both previews uncut and fully escaped stays below this; a longer line is none."""

READ_BYTES = 1_048_576
"""How much of a file one read takes at most, unless a line is longer."""


class JournalFile(NamedTuple):
    """A file of a journal directory. Sorted, they are in the order in which they were written."""

    run: str
    """the run's directory name, empty if files lie in the journal directory itself"""
    shim: str
    part: int
    path: str


class Lines(NamedTuple):
    """Whole lines of one file, without their newlines."""

    offset: int
    """where the first one begins"""
    lines: list[bytes]
    next_offset: int


class Overlong(NamedTuple):
    """A line that was skipped because it is longer than any event."""

    offset: int
    head: bytes
    next_offset: int


def journal_files(root: str) -> list[JournalFile]:
    """Lists the journals below a directory; what vanishes meanwhile is left out."""
    found = list(files_in(root, ""))
    for entry in _entries(root):
        if entry.is_dir(follow_symlinks=False):
            found += files_in(entry.path, entry.name)
    return sorted(found)


def files_in(directory: str, run: str) -> Iterator[JournalFile]:
    """The journals in one directory, which is that of `run`; in no order."""
    for entry in _entries(directory):
        if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
            stem = entry.name.removesuffix(SUFFIX)
            shim, dot, part = stem.rpartition(".")
            if dot and part.isdigit():
                yield JournalFile(run, shim, int(part), entry.path)
            else:
                yield JournalFile(run, stem, 0, entry.path)


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


class Follower:
    """Reads one file from an offset on, as it grows."""

    def __init__(self, path: str, offset: int = 0, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = path
        self.offset = offset
        """Everything before this was returned."""
        self._max_line_bytes = max_line_bytes
        self._scanned = offset
        """Past `offset` only inside an overlong line: no newline before here."""
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def read(self, max_bytes: int = READ_BYTES) -> Lines | Overlong | None:
        """Returns the next lines; None while there is no whole one. A torn last line waits."""
        if self._scanned > self.offset:
            return self._skip_overlong()
        room = max_bytes
        while True:
            data = os.pread(self._fd, room, self.offset)
            end = data.rfind(b"\n")
            if end >= 0:
                return self._take(data, end)
            if len(data) > self._max_line_bytes:
                self._scanned = self.offset + len(data)
                return self._skip_overlong()
            if len(data) < room:
                # A torn line is searched again each time: its writer may cut it off.
                return None
            room += READ_BYTES

    def size(self) -> int:
        """The file's size now."""
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)

    def _take(self, data: bytes, end: int) -> Lines:
        lines = []
        start = 0
        # Not split(): it looks at every byte, where find() leaps from newline to newline.
        while start <= end:
            newline = data.find(b"\n", start)
            lines.append(data[start:newline])
            start = newline + 1
        offset = self.offset
        self.offset = self._scanned = offset + start
        return Lines(offset, lines, self.offset)

    def _skip_overlong(self) -> Overlong | None:
        """Looks for the end of a line that is too long, a piece at a time."""
        while True:
            data = os.pread(self._fd, READ_BYTES, self._scanned)
            if not data:
                return None
            end = data.find(b"\n")
            if end >= 0:
                start = self.offset
                head = os.pread(self._fd, 256, start)
                self.offset = self._scanned = self._scanned + end + 1
                return Overlong(start, head, self.offset)
            self._scanned += len(data)
