"""Opens journal files: `<shim_id>.jsonl`, then `<shim_id>.1.jsonl` and so on when it rotates.

A writer holds an exclusive flock(2) on its file for as long as it lives, so that retention can
tell a journal in use from a finished one.
"""

import fcntl
import os
from typing import NamedTuple

from subluminal.errors import SubluminalError
from subluminal.journal.chain import seed

SUFFIX = ".jsonl"
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class JournalUnavailable(SubluminalError):
    """Events cannot be recorded; `decision_on_error` applies (journal-first)."""

    def __init__(self, path: str, error: OSError | str) -> None:
        reason = error if isinstance(error, str) else (error.strerror or str(error)).lower()
        super().__init__(
            f"cannot write the journal `{path}`: {reason}",
            hint="check that the directory is writable and that its disk has room",
        )


class Opened(NamedTuple):
    """A journal file that is ours to append to, and where its chain stands."""

    fd: int
    path: str
    part: int
    size: int
    n: int
    prev: bytes


def part_path(directory: str, shim_id: str, part: int) -> str:
    """The path of a shim's `part`-th file, from 0."""
    return os.path.join(directory, f"{shim_id}.{part}{SUFFIX}" if part else f"{shim_id}{SUFFIX}")


def open_last(directory: str, shim_id: str) -> Opened:
    """Creates a shim's first file; if there is one, opens the last and continues its chain."""
    if not shim_id or "/" in shim_id or shim_id.startswith("."):
        raise JournalUnavailable(directory, f"`{shim_id}` cannot be part of a file name")
    _make_private_dirs(directory)
    try:
        return open_part(directory, shim_id, 0)
    except FileExistsError:
        # Only a process that takes over from a dead one comes here; it can afford the import.
        from subluminal.journal.resuming import resume

        return resume(directory, shim_id)


def open_part(directory: str, shim_id: str, part: int) -> Opened:
    """Creates a new file. Raises FileExistsError if it is there, else JournalUnavailable."""
    path = part_path(directory, shim_id, part)
    fd = open_locked(path, os.O_EXCL)
    return Opened(fd, path, part, 0, 1, seed(shim_id))


def open_locked(path: str, flags: int = 0) -> int:
    """Opens a journal file and claims it."""
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
        raise JournalUnavailable(path, "another process is writing it") from error
    return fd


def _make_private_dirs(path: str) -> None:
    """Creates a directory and its parents, each 0700; os.makedirs would do so for the last only."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        parent = os.path.dirname(path)
        if parent == path:
            raise JournalUnavailable(path, "there is no such directory") from None
        _make_private_dirs(parent)
        _make_private_dirs(path)
    except OSError as error:
        raise JournalUnavailable(path, error) from error
