"""Appends one shim's events to its journal file, before the shim acts on them (journal-first).

On the path of every call: no JSON, no logging, one write(2) per flush. Lines come in as bytes that
already carry `n` and `prev`; their meaning is not this module's business. `files` opens the files.

A full disk makes a flush retreat in this order, and each step tries the write again:

    1. write the batch as it is
    2. drop the preview texts of the lines that are not written yet (`chain`: the hashes stay valid)
    3. release the reserve, space that was allocated when the journal was opened
    4. give up: raise JournalUnavailable, count the lines in `lost`, and set `n` and `prev` back to
       the first line that was not written, so that the chain has no gap; the caller then applies
       `decision_on_error` and records `lost` when it can

Any other error goes from 1 to 4. Once the reserve is spent, every batch is written without
previews, until the disk has plenty of space again and the reserve is taken anew (tried every 256
flushes).

A write may stop in the middle of a line. The whole lines before it stay and keep their numbers,
because a reader may have seen them. The torn line is truncated; where that is impossible (an
append-only file), a newline ends it, and readers skip it because it is not an event.
"""

import errno
import os
from collections.abc import Callable

from subluminal.journal import files
from subluminal.journal.chain import chained_form, link, seed
from subluminal.journal.files import JournalUnavailable
from subluminal.system.files import allocate

_FULL = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
_CLOSED = -1
"""A late write then fails, instead of reaching whoever has the descriptor's number by now."""
_REARM_EVERY = 256
"""Flushes between two attempts to take a spent reserve again."""


def _always() -> bool:
    return True


class Reserve:
    """Preallocated disk space: with it, a full disk does not stop decisions at once.

    The file is unlinked as soon as it exists, so the death of a shim frees its space.
    """

    def __init__(self, directory: str, size_bytes: int) -> None:
        self._directory = directory
        self._size_bytes = size_bytes
        self._fd = -1
        self.is_spent = False
        """True while the disk is full; previews are dropped until space is available."""
        self._hold()

    def release(self) -> bool:
        """Frees the space. Returns False if there was none left."""
        self.is_spent = True
        if self._fd < 0:
            return False
        os.close(self._fd)
        self._fd = -1
        return True

    def rearm(self) -> None:
        """Takes the space again if the disk has plenty; otherwise the journal needs it more."""
        try:
            disk = os.statvfs(self._directory)
        except OSError:
            return
        if disk.f_bavail * disk.f_frsize > 4 * self._size_bytes + 1_048_576:
            self._hold()

    def _hold(self) -> None:
        self.is_spent = False
        if not self._size_bytes:
            return
        path = os.path.join(self._directory, f".reserve-{os.getpid()}-{id(self):x}")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            self.is_spent = True
            return
        try:
            os.unlink(path)
            allocate(fd, 0, self._size_bytes)
        except OSError:
            os.close(fd)
            self.is_spent = True
            return
        self._fd = fd


class Journal:
    """One shim's journal: numbered, chained, rotated.

    INVARIANT: the file holds whole lines of one unbroken chain. A line that a full disk tore is cut
    off before anything else is written.
    """

    def __init__(
        self,
        directory: str,
        shim_id: str,
        *,
        max_bytes: int,
        reserve_bytes: int = 262_144,
        beginning: bytes | None = None,
    ) -> None:
        """Creates the journal, or continues the one that a dead process of this shim left.

        `max_bytes` is the size at which it rotates, `beginning` the chain's hash before the shim's
        first event; None if the journal is not sealed (`seals`). Raises JournalUnavailable if
        nothing can be recorded in the directory.
        """
        self._directory = directory
        self._shim_id = shim_id
        self._max_bytes = max_bytes
        opened = files.open_last(directory, shim_id, beginning or seed(shim_id))
        self.path = opened.path
        self.n = opened.n
        """number of the next event"""
        self.prev = opened.prev
        """the chain's hash before the next event, in hex"""
        self.lost = 0
        """number of events that could not be written"""
        self._fd = opened.fd
        self._part = opened.part
        self._size = opened.size
        self._unwritten: list[bytes] = []
        self._kept = (self.n, self.prev)
        """`n` and `prev` after the last line that is in the file"""
        self._reserve = Reserve(directory, reserve_bytes)
        self._is_torn = False
        """True while the file ends with a torn line that could not be truncated"""
        self._counter: memoryview | list[int] = [0]
        self._counter_base = 0
        self._may_count: Callable[[], bool] = _always
        self._lean_flushes = 0

    def add(self, line: bytes) -> None:
        """Chains and buffers one event that was encoded with this journal's `n` and `prev`."""
        self.add_chained(line + b"\n", 1, link(self.prev, chained_form(line)))

    def add_chained(self, lines: bytes, count: int, head: bytes) -> None:
        """Buffers `count` lines, newlines included, that the caller has chained itself.

        `head` is the chain's hash after the last line.
        """
        self._unwritten.append(lines)
        self.n += count
        self.prev = head

    def flush(self) -> None:
        """Writes everything buffered, as `write_chained` does."""
        if self._unwritten:
            self.write_chained(b"", 0, self.prev)

    def write_chained(self, lines: bytes, count: int, head: bytes) -> None:
        """Writes everything buffered and these lines, in one write(2). See `add_chained`.

        Raises JournalUnavailable when the disk is full and the reserve is spent. The caller must
        then treat the whole batch as unrecorded, although its first lines may be in the file.
        """
        data = lines
        if self._unwritten:
            data = b"".join((*self._unwritten, lines))
            self._unwritten = []
        self.n += count
        self.prev = head
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
                    if self._may_count():
                        self._counter[0] = self._counter_base + self.n - 1
                else:
                    self._persist(self._write_rest(_lines(data), data, written))
        if self._size >= self._max_bytes:
            self._rotate()

    def count_in(self, counter: memoryview, base: int, may_count: Callable[[], bool]) -> None:
        """Counts the events that are in the file in `counter[0]`, from now on, added to `base`.

        INVARIANT: counted after the write(2). A kill in between leaves events that are not counted,
        never a count of events that are not there. `close` and `drop` release the counter.
        `may_count` is asked before: a counter in a file that was cut must not be touched.
        """
        self._forget_counter()
        self._counter, self._counter_base, self._may_count = counter, base, may_count
        self._count()

    def _count(self) -> None:
        if self._may_count():
            self._counter[0] = self._counter_base + self._kept[0] - 1

    def _forget_counter(self) -> None:
        if isinstance(self._counter, memoryview):
            self._counter.release()
        self._counter, self._may_count = [0], _always

    def rotate_at(self, max_bytes: int) -> None:
        """Changes the size at which the journal rotates."""
        self._max_bytes = max_bytes

    def close(self) -> None:
        """Closes the file. Events that were not flushed count as lost."""
        self.lost += self._forget()
        self.drop()

    def drop(self) -> None:
        """Closes the file and drops the buffer: for a forked child, whose parent writes it."""
        self._forget()
        self._forget_counter()
        if self._fd == _CLOSED:
            return
        fd, self._fd = self._fd, _CLOSED
        os.close(fd)
        self._reserve.release()

    def _forget(self) -> int:
        """Drops the buffered events. Returns their number."""
        lines, self._unwritten = b"".join(self._unwritten), []
        return lines.count(b"\n")

    def _persist(self, left: list[bytes]) -> None:
        """Writes lines to a disk that may be full; the retreat is described at the top."""
        while left:
            if self._is_torn:
                left = self._end_torn_line(left)
            else:
                left = self._write_rest(left, b"\n".join(left) + b"\n", 0)
        self._count()

    def _write_rest(self, lines: list[bytes], data: bytes, written: int) -> list[bytes]:
        """Writes the rest of `data` after a short write(2). Returns the lines to try next."""
        while written < len(data):
            try:
                written += os.write(self._fd, data[written:])
            except OSError as error:
                return self._slimmer(self._after(lines, written), error)
        return self._after(lines, written)

    def _slimmer(self, lines: list[bytes], error: OSError) -> list[bytes]:
        """Takes the next step of the retreat: returns lines to try, or raises when done."""
        if error.errno in _FULL:
            leaner = [chained_form(line) for line in lines]
            if leaner != lines or self._reserve.release():
                return leaner
        self.lost += len(lines)
        self.n, self.prev = self._kept
        raise JournalUnavailable(self.path, error) from error

    def _after(self, lines: list[bytes], written: int) -> list[bytes]:
        """Accounts for the lines in `written` bytes, cuts off a torn one, returns the rest."""
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
            # The file is append-only, so the torn line stays.
            self._is_torn = True
            self._size += torn_bytes

    def _end_torn_line(self, lines: list[bytes]) -> list[bytes]:
        """Ends a torn line that had to stay, so that the next event begins on a new line."""
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
        """Continues in a new file. If that fails, stays in this one until the next flush."""
        try:
            fd, path = files.open_part(self._directory, self._shim_id, self._part + 1)
        except (JournalUnavailable, FileExistsError):
            return
        os.close(self._fd)
        self._fd, self.path, self._part, self._size = fd, path, self._part + 1, 0


def _lines(data: bytes) -> list[bytes]:
    return data[:-1].split(b"\n")
