"""Continues the journal of a dead shim, for its `run_end` or for its restart (no-orphans).

Also finds the last event of a journal without changing it. Unlike `writing` it parses JSON, so it
is imported only when needed.
"""

import os

from msgspec import MsgspecError, Struct, json

from subluminal.journal.chain import chained_form, link
from subluminal.journal.files import JournalUnavailable, Opened, open_locked, part_path
from subluminal.journal.reading import MAX_LINE_BYTES

_TAIL_BYTES = 65_536
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A pipe in place of the file must not make us wait."""


class _Source(Struct, frozen=True):
    n: int
    prev: str


class _Placed(Struct, frozen=True):
    source: _Source


_decode = json.Decoder(_Placed).decode


def resume(directory: str, shim_id: str, beginning: bytes) -> Opened:
    """Opens a shim's last file, cuts off a torn line, and finds the state of the chain."""
    part = 0
    while os.path.exists(part_path(directory, shim_id, part + 1)):
        part += 1
    path = part_path(directory, shim_id, part)
    fd = open_locked(path)
    try:
        size = _cut_torn_line(fd)
        n, prev = _head(fd, size, directory, shim_id, part) or (1, beginning)
    except (OSError, JournalUnavailable) as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise JournalUnavailable(path, error) from error
        raise
    return Opened(fd, path, part, size, n, prev)


def last_number(directory: str, shim_id: str) -> int:
    """Returns the number of the last whole event in a shim's files; 0 if there is none."""
    part = 0
    while os.path.exists(part_path(directory, shim_id, part + 1)):
        part += 1
    for number in range(part, -1, -1):
        try:
            fd = os.open(part_path(directory, shim_id, number), _READ_ONLY)
        except (OSError, ValueError):
            continue  # removed meanwhile, or a name that no file has
        try:
            size = _whole_bytes(fd)
            if size:
                return _decode(_last_line(fd, size)).source.n
        except MsgspecError:
            return 0
        finally:
            os.close(fd)
    return 0


def _cut_torn_line(fd: int) -> int:
    end = _whole_bytes(fd)
    if end < os.fstat(fd).st_size:
        os.ftruncate(fd, end)
    return end


def _whole_bytes(fd: int) -> int:
    """Returns the size of a file up to its last newline."""
    end = os.fstat(fd).st_size
    while end:
        start = max(0, end - _TAIL_BYTES)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _head(fd: int, size: int, directory: str, shim_id: str, part: int) -> tuple[int, bytes] | None:
    """Returns `n` and `prev` of the next event, from the last line of this or an earlier file.

    None if no file has a line.
    """
    if not size and part:
        before = os.open(part_path(directory, shim_id, part - 1), _READ_ONLY)
        try:
            return _head(before, os.fstat(before).st_size, directory, shim_id, part - 1)
        finally:
            os.close(before)
    if not size:
        return None
    line = _last_line(fd, size)
    try:
        source = _decode(line).source
    except MsgspecError as error:
        path = part_path(directory, shim_id, part)
        raise JournalUnavailable(path, f"its last line is not an event: {error}") from None
    return source.n + 1, link(source.prev.encode(), chained_form(line))


def _last_line(fd: int, size: int) -> bytes:
    """Returns the last line, or the end of one that is too long to be an event."""
    span = _TAIL_BYTES
    while True:
        start = max(0, size - span)
        tail = os.pread(fd, size - start, start)
        newline = tail.rfind(b"\n", 0, -1)
        if newline >= 0 or start == 0 or span > MAX_LINE_BYTES:
            return tail[newline + 1 : -1]
        span *= 2
