"""Makes, opens and checks the memory-mapped file of a run. Knows its header, not its contents."""

import errno
import mmap
import os
import stat
import struct

from subluminal.config.places import encode_name, make_private_dir
from subluminal.state import layout
from subluminal.state.errors import StateUnusable, damaged

UNFINISHED = "."
"""First character of a file that is being made; `encode_name` never yields it."""

_FILE_BYTES = layout.FILE_WORDS * layout.WORD_BYTES
_CHECK_HINT = "check the disk, and who owns SUB_HOME and may write there"


def runs_dir(state_dir: str) -> str:
    """Where the state files are, one for each run."""
    return os.path.join(state_dir, "runs")


def state_path(state_dir: str, run_id: str) -> str:
    """The state file of a run."""
    return os.path.join(runs_dir(state_dir), encode_name(run_id))


class StateFile:
    """An open, mapped and checked state file."""

    def __init__(self, path: str) -> None:
        """Opens an existing file; FileNotFoundError if there is none."""
        self.path = path
        self.fd = _open(path)
        try:
            self.data = mmap.mmap(self.fd, _FILE_BYTES)
        except OSError as error:
            os.close(self.fd)
            raise _unusable(path, error) from error
        self.words = memoryview(self.data).cast("q")
        """the same bytes as integers: assigning one is a single store"""
        try:
            self._check_header()
        except StateUnusable:
            self.close()
            raise

    def back(self, start: int, words: int) -> None:
        """Gives disk blocks to a range before it is written for the first time.

        A store into a hole of a sparse file on a full disk is a SIGBUS, which would take the shim
        and the client's stream with it; this way it is an error that `decision_on_error` answers.
        """
        try:
            _fallocate(self.fd, start, words)
        except OSError as error:
            raise _unusable(self.path, error) from error

    def is_current(self) -> bool:
        """Whether the path still leads to this file: it may have been pruned, and made anew."""
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self.fd))

    def close(self) -> None:
        """Unmaps and closes. Frees the lock of the run, if this process holds it."""
        self.words.release()
        self.data.close()
        os.close(self.fd)

    def _check_header(self) -> None:
        if self.words[layout.W_MAGIC] != layout.MAGIC:
            raise damaged(self.path, "it is not a state file")
        version = self.words[layout.W_VERSION]
        if version != layout.VERSION:
            raise StateUnusable(
                self.path,
                f"its version is {version}, and this is a `sub` for version {layout.VERSION}",
                hint="start a new run, or finish this one with the `sub` that began it",
            )
        for place in layout.TABLES:
            if not 0 <= self.words[place.used] <= place.shape.capacity:
                raise damaged(self.path, "its header contradicts itself")


def incarnation_of(state_dir: str, run_id: str) -> int | None:
    """What tells a run's state from one that is made after it is removed; None if there is none.

    Raises:
        StateUnusable: there is a file, and it is not a sound one.
    """
    try:
        file = StateFile(state_path(state_dir, run_id))
    except FileNotFoundError:
        return None
    try:
        return int(file.words[layout.W_INCARNATION])
    finally:
        file.close()


def is_over(state_dir: str, run_id: str) -> bool:
    """Whether the run ended and nobody came after, or its state is gone."""
    try:
        file = StateFile(state_path(state_dir, run_id))
    except (FileNotFoundError, StateUnusable):
        return True
    try:
        return bool(file.words[layout.W_ENDED])
    finally:
        file.close()


def open_or_create(state_dir: str, run_id: str) -> StateFile:
    """Opens the state of a run; the first to come makes it. Every racer ends up with one file."""
    path = state_path(state_dir, run_id)
    while True:
        try:
            return StateFile(path)
        except FileNotFoundError:
            try:
                make_private_dir(state_dir)
                _create(make_private_dir(runs_dir(state_dir)), path)
            except OSError as error:
                raise _unusable(path, error) from error


def _create(directory: str, path: str) -> None:
    # Made under another name and linked when complete, so that no process ever sees half a header,
    # and a process killed here leaves nothing that another one would have to repair.
    unfinished = os.path.join(directory, f"{UNFINISHED}{os.getpid()}-{os.urandom(4).hex()}")
    fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, _FILE_BYTES)
        _fallocate(fd, 0, layout.ALWAYS_BACKED_WORDS)
        os.pwrite(fd, struct.pack("=2q", layout.MAGIC, layout.VERSION), 0)
        # Grants name it: what was spent cannot be had again by removing the file.
        os.pwrite(fd, os.urandom(layout.WORD_BYTES), layout.W_INCARNATION * layout.WORD_BYTES)
        os.link(unfinished, path)
    except FileExistsError:
        pass  # another shim was first
    finally:
        os.close(fd)
        os.unlink(unfinished)


def _open(path: str) -> int:
    """Opens and returns a descriptor of a regular file of the right size."""
    try:
        # A link in our directory is not of our making.
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(path, error) from error
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_size == _FILE_BYTES:
        return fd
    os.close(fd)
    if not stat.S_ISREG(found.st_mode):
        raise damaged(path, "it is not a regular file")
    raise damaged(path, f"it has {found.st_size} bytes instead of {_FILE_BYTES}")


def _fallocate(fd: int, start: int, words: int) -> None:
    try:
        os.posix_fallocate(fd, start * layout.WORD_BYTES, words * layout.WORD_BYTES)
    except OSError as error:
        # A file system that cannot promise blocks: nothing is lost but the promise.
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise


def _unusable(path: str, error: OSError) -> StateUnusable:
    return StateUnusable(path, (error.strerror or str(error)).lower(), hint=_CHECK_HINT)
