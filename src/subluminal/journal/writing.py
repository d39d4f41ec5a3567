"""Appends one shim's events to its journal file, before the shim acts on them (journal-first).

On the hot path: no JSON, no logging, one write(2) per flush. It does not know what an event means;
lines come in as bytes that already carry `n` and `prev`. Files are opened by `files`.
"""

import errno
import os

from subluminal.journal import files
from subluminal.journal.chain import chained_form, link
from subluminal.journal.files import JournalUnavailable
from subluminal.journal.reserve import Reserve

_FULL = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
_CLOSED = -1
"""A late write then fails, instead of reaching whoever has the descriptor's number by now."""
_REARM_EVERY = 256
"""Flushes between two looks at whether a spent reserve can be had again."""


class Journal:
    """One shim's journal: numbered, chained, rotated.

    INVARIANT: what stands in the file is whole lines of one unbroken chain. A line that a full disk
    tore is cut off again before anything else is written.
    """

    def __init__(
        self, directory: str, shim_id: str, *, max_bytes: int, reserve_bytes: int = 262_144
    ) -> None:
        """Opens the journal, or continues the one that a dead process of this shim left.

        Raises JournalUnavailable when nothing could be recorded there.
        """
        self._directory = directory
        self._shim_id = shim_id
        self._max_bytes = max_bytes
        opened = files.open_last(directory, shim_id)
        self.path = opened.path
        self.n = opened.n
        """the number that the next event carries"""
        self.prev = opened.prev
        """the chain's hash before the next event, in hex"""
        self.lost = 0
        """events that could not be written"""
        self._fd = opened.fd
        self._part = opened.part
        self._size = opened.size
        self._unwritten: list[bytes] = []
        self._kept = (self.n, self.prev)
        self._reserve = Reserve(directory, reserve_bytes)
        self._is_torn = False
        self._lean_flushes = 0

    def add(self, line: bytes) -> None:
        """Chains and buffers one event, written with this journal's `n` and `prev`."""
        self.add_chained(line + b"\n", 1, link(self.prev, chained_form(line)))

    def add_chained(self, lines: bytes, count: int, head: bytes) -> None:
        """Buffers `count` lines, newlines included, of a caller that has the chained forms at hand.

        `head` is the chain's hash after the last of them.
        """
        self._unwritten.append(lines)
        self.n += count
        self.prev = head

    def flush(self) -> None:
        """Writes everything buffered, in one write(2).

        Raises JournalUnavailable when the disk is full and the reserve is spent: no event of the
        batch may be relied on, `lost` counts them, and `n` and `prev` are those of the next event
        that can be written. A whole line that did reach the file stays and keeps its number,
        because a follower may have read it already.
        """
        if not self._unwritten:
            return
        data = b"".join(self._unwritten)
        self._unwritten = []
        if self._reserve.is_spent or self._is_torn:
            self._persist(self._without_previews(_lines(data)))
        else:
            try:
                written = os.write(self._fd, data)
            except OSError as error:
                self._persist(self._slimmer(_lines(data), error))
            else:
                if written == len(data):
                    self._size += written
                    self._kept = (self.n, self.prev)
                else:
                    self._persist(self._write_rest(_lines(data), data, written))
        if self._size >= self._max_bytes:
            self._rotate()

    def rotate_at(self, max_bytes: int) -> None:
        """Changes the size at which the journal goes on under another name."""
        self._max_bytes = max_bytes

    def close(self) -> None:
        """Closes the file. What was not flushed was not recorded, and counts as lost."""
        self.lost += self._forget()
        self.drop()

    def drop(self) -> None:
        """Closes the file and forgets what is buffered: a forked child does, the parent writes it."""
        self._forget()
        os.close(self._fd)
        self._fd = _CLOSED
        self._reserve.release()

    def _forget(self) -> int:
        """Drops what is buffered; returns how many events that were."""
        lines, self._unwritten = b"".join(self._unwritten), []
        return lines.count(b"\n")

    def _persist(self, left: list[bytes]) -> None:
        """Gets lines onto a disk that is full: without previews, then out of the reserve."""
        while left:
            if self._is_torn:
                left = self._end_torn_line(left)
            else:
                left = self._write_rest(left, b"\n".join(left) + b"\n", 0)

    def _write_rest(self, lines: list[bytes], data: bytes, written: int) -> list[bytes]:
        """Writes what a short write(2) left over; returns the lines to try next."""
        while written < len(data):
            try:
                written += os.write(self._fd, data[written:])
            except OSError as error:
                return self._slimmer(self._after(lines, written), error)
        return self._after(lines, written)

    def _slimmer(self, lines: list[bytes], error: OSError) -> list[bytes]:
        """What to try next when lines did not fit. Raises JournalUnavailable at the end."""
        if error.errno in _FULL:
            leaner = [chained_form(line) for line in lines]
            if leaner != lines or self._reserve.release():
                return leaner
        self.lost += len(lines)
        self.n, self.prev = self._kept
        raise JournalUnavailable(self.path, error) from error

    def _after(self, lines: list[bytes], written: int) -> list[bytes]:
        """Keeps the whole lines among `written` bytes, cuts off a torn one, returns the rest."""
        done = whole = 0
        n, prev = self._kept
        for line in lines:
            if written < done + len(line) + 1:
                break
            done += len(line) + 1
            whole += 1
            n, prev = n + 1, link(prev, chained_form(line))
        self._kept = (n, prev)
        self._size += done
        if written > done:
            self._cut_off(written - done)
        return lines[whole:]

    def _cut_off(self, torn_bytes: int) -> None:
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            # An append-only file: what is torn must stay.
            self._is_torn = True
            self._size += torn_bytes

    def _end_torn_line(self, lines: list[bytes]) -> list[bytes]:
        """Turns a torn line that had to stay into one that is no event."""
        try:
            self._size += os.write(self._fd, b"\n")
        except OSError as error:
            return self._slimmer(lines, error)
        self._is_torn = False
        return lines

    def _without_previews(self, lines: list[bytes]) -> list[bytes]:
        self._lean_flushes += 1
        if self._reserve.is_spent and self._lean_flushes % _REARM_EVERY == 0:
            self._reserve.rearm()
        return [chained_form(line) for line in lines]

    def _rotate(self) -> None:
        """Goes on under the next name; if that cannot be had, stays and tries at the next flush."""
        try:
            opened = files.open_part(self._directory, self._shim_id, self._part + 1)
        except (JournalUnavailable, FileExistsError):
            return
        os.close(self._fd)
        self._fd, self.path, self._part, self._size = opened.fd, opened.path, opened.part, 0


def _lines(data: bytes) -> list[bytes]:
    return data[:-1].split(b"\n")
