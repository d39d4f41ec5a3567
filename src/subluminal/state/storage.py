"""Creates, opens and checks the memory-mapped file of a run. Knows its header, not its contents.

A process maps a state file once, however many hosts and threads use it: closing a second descriptor
of the file would free the run's lock (see `lock`). So `StateFile` objects of one file share a
mapping, and the last one to close frees it.
"""

import mmap
import os
import stat
import struct
from _thread import allocate_lock  # `threading` would cost a shim's start a millisecond

from subluminal.config.places import encode_name, make_private_dir
from subluminal.state import layout
from subluminal.state.errors import StateUnusable, damaged
from subluminal.state.mutex import Mutex
from subluminal.system.files import allocate

UNFINISHED = "."
"""First character of an unfinished file's name; names from `encode_name` never begin with it."""

FILE_BYTES = layout.FILE_WORDS * layout.WORD_BYTES
_seek, _END = os.lseek, os.SEEK_END
_W_MAGIC, _MAGIC = layout.W_MAGIC, layout.MAGIC
_CHECK_HINT = "check that the disk has room, and that you own SUB_HOME and may write there"


def runs_dir(state_dir: str) -> str:
    """Returns the directory of the state files, one for each run."""
    return os.path.join(state_dir, "runs")


def state_path(state_dir: str, run_id: str) -> str:
    """Returns the path of a run's state file."""
    return os.path.join(runs_dir(state_dir), encode_name(run_id))


class _Mapping:
    """One state file in this process: its descriptor, its memory, and the number of its users."""

    __slots__ = ("data", "fd", "key", "mutex", "users", "words")

    def __init__(self, path: str, fd: int) -> None:
        self.fd = fd
        try:
            self.data = mmap.mmap(fd, FILE_BYTES)
        except OSError as error:
            os.close(fd)
            raise _unusable(path, error) from error
        self.words = memoryview(self.data).cast("q")
        self.key = _key(os.fstat(fd))
        self.mutex = Mutex()
        self.users = 0

    def close(self) -> None:
        self.words.release()
        self.data.close()
        os.close(self.fd)


_mappings: dict[tuple[int, int], _Mapping] = {}
"""Every state file that this process has open, by device and inode."""
_registry = allocate_lock()
"""Held while `_mappings` is read or changed."""


def _renew_mutexes() -> None:
    """Makes new locks in a forked child."""
    global _registry
    _registry = allocate_lock()
    for mapping in _mappings.values():
        mapping.mutex.renew()


os.register_at_fork(after_in_child=_renew_mutexes)


class StateFile:
    """An open, mapped and checked state file."""

    def __init__(self, path: str) -> None:
        """Opens an existing file. Raises FileNotFoundError or StateUnusable."""
        self.path = path
        with _registry:
            mapping = _mapped(path)
            mapping.users += 1
        self._mapping = mapping
        self.fd = mapping.fd
        self.data = mapping.data
        self.words = mapping.words
        """the bytes of the file as integers; assigning one of them is a single store"""
        self.mutex = mapping.mutex
        """the lock between threads of this process"""
        try:
            self._check_header()
        except StateUnusable:
            self.close()
            raise

    def back(self, start: int, words: int) -> None:
        """Allocates disk blocks for a range before it is written for the first time.

        On a full disk, a store into a hole of a sparse file raises SIGBUS, which would end the shim
        and the client's stream. Allocating first raises StateUnusable instead, and
        `decision_on_error` applies.
        """
        try:
            allocate(self.fd, start * layout.WORD_BYTES, words * layout.WORD_BYTES)
        except OSError as error:
            raise _unusable(self.path, error) from error

    def is_whole(self) -> bool:
        """Returns False if somebody cut the file or overwrote its header since it was opened.

        Reading the mapping beyond the end of its file would be a SIGBUS, so whoever reads it
        without the lock asks first. Taking the lock checks the same.
        """
        # Flat on purpose: every call passes here several times.
        return _seek(self.fd, 0, _END) == FILE_BYTES and self.words[_W_MAGIC] == _MAGIC

    def harm(self) -> StateUnusable:
        """Returns the error for a file that is not whole."""
        size = _seek(self.fd, 0, _END)
        if size != FILE_BYTES:
            return damaged(self.path, f"it has {size} bytes instead of {FILE_BYTES}")
        return damaged(self.path, "it was overwritten")

    def is_current(self) -> bool:
        """Returns True if the path still leads to this file; `prune` may have removed it."""
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return False
        return _key(there) == self._mapping.key

    def close(self) -> None:
        """Closes the file. The last user in this process unmaps it, which frees the run's lock."""
        with _registry:
            mapping = self._mapping
            mapping.users -= 1
            if mapping.users == 0:
                del _mappings[mapping.key]
                mapping.close()

    def _check_header(self) -> None:
        if self.words[layout.W_MAGIC] != layout.MAGIC:
            raise damaged(self.path, "it is not a state file")
        version = self.words[layout.W_VERSION]
        if version != layout.VERSION:
            raise StateUnusable(
                self.path,
                f"its version is {version}, and this `sub` needs version {layout.VERSION}",
                hint="start a new run, or finish this one with the `sub` that began it",
            )
        for place in layout.TABLES:
            if not 0 <= self.words[place.used] <= place.shape.capacity:
                raise damaged(self.path, "its header contradicts itself")


def incarnation_of(state_dir: str, run_id: str) -> int | None:
    """Returns the incarnation of a run's state (see `RunState.incarnation`); None without a state.

    Raises:
        StateUnusable: the file is not a valid state file.
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
    """Returns True if the run has ended and no shim has attached since, or if its state is gone."""
    try:
        file = StateFile(state_path(state_dir, run_id))
    except (FileNotFoundError, StateUnusable):
        return True
    try:
        return bool(file.words[layout.W_ENDED])
    finally:
        file.close()


def open_existing(state_dir: str, run_id: str) -> StateFile:
    """Opens the state of a run. Raises StateUnusable, also if there is none."""
    path = state_path(state_dir, run_id)
    try:
        return StateFile(path)
    except FileNotFoundError as error:
        raise _unusable(path, error) from error


def set_aside(state_dir: str, run_id: str) -> bool:
    """Moves a damaged file out of the way, for a person to inspect; False if there is no file."""
    path = state_path(state_dir, run_id)
    aside = f"{UNFINISHED}damaged-{os.urandom(4).hex()}-{os.path.basename(path)}"
    try:
        os.rename(path, os.path.join(runs_dir(state_dir), aside))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(path, error) from error
    return True


def open_or_create(state_dir: str, run_id: str) -> StateFile:
    """Opens the state of a run, and creates it if needed. Processes that race get the same file."""
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
    # The file is created under another name and linked when it is complete: no process ever sees
    # half a header, and a process that is killed here leaves nothing to repair.
    unfinished = os.path.join(directory, f"{UNFINISHED}{os.getpid()}-{os.urandom(4).hex()}")
    fd = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, FILE_BYTES)
        allocate(fd, 0, layout.ALWAYS_BACKED_WORDS * layout.WORD_BYTES)
        os.pwrite(fd, struct.pack("=2q", layout.MAGIC, layout.VERSION), 0)
        # Grants name this number, so removing the file does not make spent grants valid again.
        os.pwrite(fd, os.urandom(layout.WORD_BYTES), layout.W_INCARNATION * layout.WORD_BYTES)
    except BaseException:
        os.close(fd)
        os.unlink(unfinished)
        raise
    # INVARIANT: closed before anybody can find the file. A close frees the lock of this process.
    os.close(fd)
    try:
        os.link(unfinished, path)
    except FileExistsError:
        pass  # another shim was first
    finally:
        os.unlink(unfinished)


def _mapped(path: str) -> _Mapping:
    """Returns this process' mapping of a file, and creates it if needed. Needs `_registry`."""
    try:
        known = _mappings.get(_key(os.lstat(path)))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(path, error) from error
    if known is not None:
        return known
    mapping = _Mapping(path, _open(path))
    _mappings[mapping.key] = mapping
    return mapping


def _key(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _open(path: str) -> int:
    """Opens a regular file of the right size and returns its descriptor."""
    try:
        # We never create symbolic links here, so we do not follow one.
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unusable(path, error) from error
    found = os.fstat(fd)
    if stat.S_ISREG(found.st_mode) and found.st_size == FILE_BYTES:
        return fd
    os.close(fd)
    if not stat.S_ISREG(found.st_mode):
        raise damaged(path, "it is not a regular file")
    raise damaged(path, f"it has {found.st_size} bytes instead of {FILE_BYTES}")


def _unusable(path: str, error: OSError) -> StateUnusable:
    return StateUnusable(path, (error.strerror or str(error)).lower(), hint=_CHECK_HINT)
