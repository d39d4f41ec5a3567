"""Removes journals that the ledger holds: 24 h after they were ingested, never one in use (journal-first)."""

import fcntl
import os

KEEP_MS = 86_400_000


def remove_ingested(path: str, *, offset: int, ingested_ms: int, now_ms: int) -> bool:
    """Removes a journal file that was read to its end long enough ago. True if it is gone.

    `offset` is how far the ledger has read, `ingested_ms` when it last read from it.
    """
    if now_ms - ingested_ms < KEEP_MS:
        return False
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    try:
        # A living writer holds this lock; were its file removed, its events would go nowhere.
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
    """Whether all that is unread is the torn line of a writer that is dead (we hold its lock)."""
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
