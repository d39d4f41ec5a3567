"""Lists journals, follows them as they grow, and removes them once the ledger has them.

For the ledger, and for commands that work without a daemon. A reader gets whole lines only, in
bounded memory (journal-first); their meaning is not this module's business.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from subluminal.journal.files import SUFFIX

MAX_LINE_BYTES = 8_388_608
"""Longest line that can be an event: larger than both previews uncut and fully escaped."""

READ_BYTES = 1_048_576
"""Most bytes of a file in one read, unless a line is longer."""

READ_LINES = 4_096
"""Most lines in one read. Real events are so long that READ_BYTES comes first; this bounds the work
that a file of very short lines causes."""

_TAIL_BYTES = 64
"""How much of an unfinished line is compared, to see whether its writer has replaced it."""

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
    digest: bytes
    """SHA-256 of the line with its newline"""


def journal_files(root: str) -> list[JournalFile]:
    """Lists the journals below a directory. Files that vanish meanwhile are left out."""
    found = list(files_in(root, ""))
    for directory in directories_in(root):
        found += files_in(directory, os.path.basename(directory))
    return sorted(found)


def directories_in(root: str) -> list[str]:
    """Lists the directories of runs below a directory, as paths."""
    return [entry.path for entry in _entries(root) if entry.is_dir(follow_symlinks=False)]


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
    """Reads one file from an offset on, while it grows.

    Every byte is searched once for the end of its line, however slowly the line grows.
    """

    def __init__(self, path: str, offset: int = 0, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.path = path
        self.offset = offset
        """Offset of the next line: everything before it was returned."""
        self._max_line_bytes = max_line_bytes
        self.is_searching = False
        """Whether the last read stopped within an overlong line, before the end of the file."""
        self._searched = offset
        self._tail = b""
        """the last bytes before `_searched`"""
        self._digest: hashlib._Hash | None = None
        """SHA-256 of what was searched, once the line is overlong"""
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)

    @property
    def searched(self) -> int:
        """Offset up to which the file was searched: the line at `offset` has no end before it."""
        return self._searched

    def read(
        self, max_bytes: int = READ_BYTES, *, may_pause: bool = False
    ) -> Lines | Overlong | None:
        """Returns the next whole lines, or None. A torn last line is returned once it is whole.

        With `may_pause`, also returns None after READ_BYTES of an overlong line; `is_searching`
        then says that there is more to read.
        """
        self.is_searching = False
        if self._searched > self.offset and not self._is_same_line():
            self._begin_line()
        while True:
            data = os.pread(self._fd, max_bytes, self._searched)
            end = data.rfind(b"\n")
            if self._digest is not None:
                end = data.find(b"\n")
                self._digest.update(data[: end + 1] if end >= 0 else data)
            if end >= 0:
                return self._found(data, end)
            self._searched += len(data)
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
            size = self._searched - self.offset
            if self._digest is None and size > self._max_line_bytes:
                self._digest = hashlib.sha256(os.pread(self._fd, size, self.offset))
            if len(data) < max_bytes:
                return None
            if self._digest is not None and may_pause:
                self.is_searching = True
                return None

    def size(self) -> int:
        """Returns the file's size in bytes."""
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)

    def _begin_line(self) -> None:
        self._searched = self.offset
        self._tail = b""
        self._digest = None

    def _is_same_line(self) -> bool:
        """Whether the unfinished line still stands. Its writer cuts it off after a failed write."""
        start = self._searched - len(self._tail)
        return os.pread(self._fd, len(self._tail), start) == self._tail

    def _found(self, data: bytes, end: int) -> Lines | Overlong:
        """Returns what ends with the newline at `end` of `data`, and moves on behind it."""
        if self._digest is not None:
            start, digest = self.offset, self._digest.digest()
            self.offset = self._searched + end + 1
            self._begin_line()
            return Overlong(start, os.pread(self._fd, 256, start), self.offset, digest)
        if self._searched > self.offset:
            size = self._searched - self.offset
            data, end = os.pread(self._fd, size, self.offset) + data, end + size
        return self._take(data, end)

    def _take(self, data: bytes, end: int) -> Lines:
        lines: list[bytes] = []
        start = 0
        # find() is faster than split(), which looks at every byte.
        while start <= end and len(lines) < READ_LINES:
            newline = data.find(b"\n", start)
            lines.append(data[start:newline])
            start = newline + 1
        offset = self.offset
        self.offset = offset + start
        self._begin_line()
        return Lines(offset, lines, self.offset)


def lines_of(files: Iterable[JournalFile]) -> Iterator[bytes]:
    """Yields the whole lines of some files, one file after the other, without overlong lines.

    A file that was removed meanwhile is skipped.
    """
    for file in files:
        try:
            follower = Follower(file.path)
        except OSError:
            continue
        try:
            while (piece := follower.read()) is not None:
                if isinstance(piece, Lines):
                    yield from piece.lines
        finally:
            follower.close()


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
