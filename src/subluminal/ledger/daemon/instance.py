"""One ledgerd per home: a lock that dies with its process, and a note of where to find it."""

import fcntl
import os
import time

import msgspec
from msgspec import Struct

from subluminal.config.places import Places, make_private_dir
from subluminal.errors import SubluminalError

CLAIM_S = 0.3


class AlreadyRunning(SubluminalError):
    """Another ledgerd holds this home."""


class Note(Struct, frozen=True):
    """What a running ledgerd says of itself."""

    pid: int
    version: str
    started_ms: int
    http_port: int | None


def lock_path(places: Places) -> str:
    return os.path.join(places.state, "ledgerd.lock")


def ingest_path(places: Places) -> str:
    """Where ledgerd takes JSONL."""
    return os.path.join(places.runtime_dir, "ingest.sock")


def token_path(places: Places) -> str:
    return os.path.join(places.state, "ledgerd.token")


def log_path(places: Places) -> str:
    return os.path.join(places.state, "ledgerd.log")


class Lock:
    """Held by the one ledgerd of a home, from before it opens the ledger until it ends."""

    def __init__(self, places: Places) -> None:
        make_private_dir(places.home)
        make_private_dir(places.state)
        self._fd = os.open(lock_path(places), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _claim(self._fd):
            os.close(self._fd)
            note = read_note(places)
            who = f"with pid {note.pid}" if note else "already"
            raise AlreadyRunning(
                f"ledgerd runs {who} for `{places.home}`",
                hint="`sub ledgerd status` tells how it is",
            )
        os.ftruncate(self._fd, 0)

    def write(self, note: Note) -> None:
        """Says where this ledgerd is."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, msgspec.json.encode(note), 0)

    def release(self) -> None:
        os.ftruncate(self._fd, 0)
        os.close(self._fd)


def _claim(fd: int) -> bool:
    """Takes the lock. Whoever looks with `is_running` holds it for a moment: that is waited for."""
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
    """Whether someone holds the lock."""
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
    """What the running ledgerd says of itself; None if none runs, or it is still starting."""
    if not is_running(places):
        return None
    try:
        with open(lock_path(places), "rb") as file:
            return msgspec.json.decode(file.read(), type=Note)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def load_token(places: Places) -> str:
    """The token that loopback needs; created on first use."""
    path = token_path(places)
    try:
        with open(path, encoding="ascii") as file:
            token = file.read().strip()
    except FileNotFoundError:
        token = os.urandom(32).hex()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(handle, "w", encoding="ascii") as file:
            file.write(token + "\n")
    if len(token) < 32:
        raise SubluminalError(f"`{path}` is no token", hint="remove it; ledgerd makes a new one")
    return token
