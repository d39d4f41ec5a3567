"""Names and opens journal files: `SHIM_ID.jsonl`, then `SHIM_ID.1.jsonl` and so on as it rotates.

A writer holds an exclusive flock(2) on its file for as long as it lives. That tells a journal in
use from a finished one, which may be removed (`reading.remove_ingested`) or continued (`resuming`).
"""

import fcntl
import os
from typing import NamedTuple

from subluminal.errors import SubluminalError

SUFFIX = ".jsonl"
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class JournalUnavailable(SubluminalError):
    """Events cannot be recorded, so `decision_on_error` applies (journal-first)."""

    def __init__(self, path: str, error: OSError | str) -> None:
        reason = error if isinstance(error, str) else (error.strerror or str(error)).lower()
        super().__init__(
            f"cannot write the journal `{path}`: {reason}",
            hint="check that the directory is writable and that its disk is not full",
        )


class JournalBusy(JournalUnavailable):
    """Another process holds the journal's lock."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "another process is writing it")


class Opened(NamedTuple):
    """A journal file that this process may append to, and the state of its chain."""

    fd: int
    path: str
    part: int
    """number of the file among its shim's, from 0"""
    size: int
    """size of the file in bytes"""
    n: int
    """number of the next event"""
    prev: bytes
    """the chain's hash before the next event, in hex"""


def part_path(directory: str, shim_id: str, part: int) -> str:
    """Returns the path of a shim's file number `part`, from 0."""
    return os.path.join(directory, f"{shim_id}.{part}{SUFFIX}" if part else f"{shim_id}{SUFFIX}")


def open_last(directory: str, shim_id: str, beginning: bytes) -> Opened:
    """Creates a shim's first file. If the shim already has files, opens the last to continue it.

    `beginning` is the chain's hash before the shim's first event.
    """
    if not shim_id or "/" in shim_id or shim_id.startswith("."):
        raise JournalUnavailable(directory, f"`{shim_id}` cannot be part of a file name")
    _make_private_dirs(directory)
    try:
        fd, path = open_part(directory, shim_id, 0)
    except FileExistsError:
        # Only a process that takes over from a dead one needs this import, which takes time.
        from subluminal.journal.resuming import resume

        return resume(directory, shim_id, beginning)
    return Opened(fd, path, 0, 0, 1, beginning)


def open_part(directory: str, shim_id: str, part: int) -> tuple[int, str]:
    """Creates a new file; returns its descriptor and path.

    Raises FileExistsError if it exists, JournalUnavailable if it fails.
    """
    path = part_path(directory, shim_id, part)
    return open_locked(path, os.O_EXCL), path


def open_locked(path: str, flags: int = 0) -> int:
    """Opens a journal file and takes its lock."""
    try:
        fd = os.open(path, _FLAGS | flags, 0o600)
    except FileExistsError:
        raise
    except OSError as error:
        raise JournalUnavailable(path, error) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        raise JournalBusy(path) from error
    return fd


def _make_private_dirs(path: str) -> None:
    """Creates a directory and its parents, all 0700; os.makedirs sets the mode of the last only."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if parent == path or os.path.isdir(parent):  # below /proc, no directory can be made
            raise JournalUnavailable(path, "no such directory") from None
        _make_private_dirs(parent)
        _make_private_dirs(path)
    except OSError as error:
        raise JournalUnavailable(path, error) from error
