"""Lists journals, follows them as they grow, and removes them once the ledger has them.

For the ledger, and for commands that work without a daemon. A reader gets whole lines only, in
bounded memory (journal-first); their meaning is not this module's business.
"""

import fcntl
import os
from collections.abc import Iterator
from typing import NamedTuple

from subluminal.journal.files import SUFFIX

MAX_LINE_BYTES = 8_388_608
"""Longest line that can be an event: larger than both previews uncut and fully escaped."""

READ_BYTES = 1_048_576
"""Most bytes of a file in one read, unless a line is longer."""

KEEP_MS = 86_400_000
"""How long a journal file is kept after its last line was ingested: 24 h."""


class JournalFile(NamedTuple):
    """A file of a journal directory. Sorting gives the order in which the files were written."""

    run: str
    """name of the run's directory; empty for a file in the journal directory itself"""
    shim: str
    part: int
    path: str


class Lines(NamedTuple):
    """Whole lines of one file, without their newlines."""

    offset: int
    """offset of the first line"""
    lines: list[bytes]
    next_offset: int


class Overlong(NamedTuple):
    """A line that was skipped because it is longer than any event."""

    offset: int
    head: bytes
    """the first 256 bytes"""
    next_offset: int


def journal_files(root: str) -> list[JournalFile]:
    """Lists the journals below a directory. Files that vanish meanwhile are left out."""
    found = list(files_in(root, ""))
    for entry in _entries(root):
        if entry.is_dir(follow_symlinks=False):
            found += files_in(entry.path, entry.name)
    return sorted(found)


def files_in(directory: str, run: str) -> Iterator[JournalFile]:
    """Lists the journals in the directory of `run`, in no particular order."""
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
    """Reads one file from an offset on, while it grows."""

    def __init__(self, path: str, offset: int = 0, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = path
        self.offset = offset
        """Offset of the next line: everything before it was returned."""
        self._max_line_bytes = max_line_bytes
        self._scanned = offset
        """Offset up to which an overlong line has no newline; otherwise equal to `offset`."""
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def read(self, max_bytes: int = READ_BYTES) -> Lines | Overlong | None:
        """Returns the next whole lines, or None. A torn last line is returned once it is whole."""
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
                # Search a torn line again each time: its writer may cut it off.
                return None
            room += READ_BYTES

    def size(self) -> int:
        """Returns the file's size in bytes."""
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)

    def _take(self, data: bytes, end: int) -> Lines:
        lines = []
        start = 0
        # find() is faster than split(), which looks at every byte.
        while start <= end:
            newline = data.find(b"\n", start)
            lines.append(data[start:newline])
            start = newline + 1
        offset = self.offset
        self.offset = self._scanned = offset + start
        return Lines(offset, lines, self.offset)

    def _skip_overlong(self) -> Overlong | None:
        """Searches for the end of an overlong line, piece by piece."""
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


def remove_ingested(path: str, *, offset: int, ingested_ms: int, now_ms: int) -> bool:
    """Removes a journal file that was ingested to its end KEEP_MS ago, unless it is in use.

    `offset` is how far the ledger has read the file, `ingested_ms` when it last did. Returns True
    if the file is gone.
    """
    if now_ms - ingested_ms < KEEP_MS:
        return False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    try:
        # A living writer holds this lock. Without its file, its events would be lost.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_size > offset and not _only_torn(fd, offset):
            return False
        os.unlink(path)
    except OSError:
        return False
    finally:
        os.close(fd)
    _remove_empty(os.path.dirname(path))
    return True


def _only_torn(fd: int, offset: int) -> bool:
    """Whether the unread rest is one torn line. Its writer is dead, because we hold its lock."""
    at = offset
    while data := os.pread(fd, 65_536, at):
        if b"\n" in data:
            return False
        at += len(data)
    return True


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return
