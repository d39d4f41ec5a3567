"""One ledgerd per home: its lock, its note, its token, and where its files are.

The kernel releases the lock when the process dies. The note, in the locked file, says where ledgerd
is.
"""

import fcntl
import os
import time

import msgspec
from msgspec import Struct

from subluminal.config.places import Places, make_private_dir
from subluminal.config.plain_files import plain_file
from subluminal.errors import SubluminalError

CLAIM_S = 0.3
"""How long to try for the lock, in seconds: `is_running` holds it for a moment."""


class AlreadyRunning(SubluminalError):
    """Another ledgerd is running for this home."""


class Note(Struct, frozen=True):
    """What a running ledgerd writes about itself."""

    pid: int
    version: str
    started_ms: int
    http_port: int | None


def lock_path(places: Places) -> str:
    return os.path.join(places.state, "ledgerd.lock")


def ingest_path(places: Places) -> str:
    """The unix socket on which ledgerd takes JSONL."""
    return os.path.join(places.runtime_dir, "ingest.sock")


def token_path(places: Places) -> str:
    return os.path.join(places.state, "ledgerd.token")


def log_path(places: Places) -> str:
    return os.path.join(places.state, "ledgerd.log")


class Lock:
    """The lock of a home. Its ledgerd holds it from before it opens the ledger until it ends."""

    def __init__(self, places: Places) -> None:
        make_private_dir(places.home)
        make_private_dir(places.state)
        self._fd = os.open(lock_path(places), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _claim(self._fd):
            os.close(self._fd)
            note = read_note(places)
            pid = f" with pid {note.pid}" if note else ""
            raise AlreadyRunning(
                f"ledgerd is already running{pid} for `{places.home}`",
                hint="`sub ledgerd status` shows its state",
            )
        os.ftruncate(self._fd, 0)

    def write(self, note: Note) -> None:
        """Writes the note."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, msgspec.json.encode(note), 0)

    def release(self) -> None:
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def _claim(fd: int) -> bool:
    """Takes the lock. Returns False if another process holds it for longer than CLAIM_S."""
    deadline = time.monotonic() + CLAIM_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        else:
            return True


def is_running(places: Places) -> bool:
    """Whether a ledgerd is running for this home."""
    try:
        fd = os.open(lock_path(places), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read_note(places: Places) -> Note | None:
    """The note of the running ledgerd; None if none is running, or it is still starting."""
    if not is_running(places):
        return None
    try:
        with open(lock_path(places), "rb", opener=plain_file) as file:
            return msgspec.json.decode(file.read(), type=Note)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def load_token(places: Places) -> str:
    """The token that requests over loopback need. Created on first use."""
    path = token_path(places)
    try:
        with open(path, encoding="ascii", opener=plain_file) as file:
            token = file.read().strip()
    except FileNotFoundError:
        token = os.urandom(32).hex()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "w", encoding="ascii") as file:
            file.write(token + "\n")
    if len(token) < 32:
        raise SubluminalError(
            f"`{path}` does not hold a valid token",
            hint="remove the file; ledgerd then creates a new token",
        )
    return token
