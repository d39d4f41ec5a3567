"""One layer's policy file: watched, compiled and cached (fast-start).

Theory of operation. `look` checks the file's stamp. If the file changed, its content is read and
hashed, and the cache is asked for a snapshot with that hash. If there is none, the layer waits for
its turn (one process of the home compiles at a time) and starts a helper process; `collect` takes
the helper's answer. If the file changed meanwhile, all of that begins again.

A file that is deleted, unreadable or wrong changes nothing: only a policy that compiles replaces
the policy in force. Snapshots are cached by content, under this home's seal.
"""

import fcntl
import hashlib
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from subluminal.config.places import Places, make_private_dir
from subluminal.config.plain_files import plain_file
from subluminal.contracts.vocabulary import Layer
from subluminal.core.controls.sealed import read_sealed, seal_key, write_sealed
from subluminal.core.policies.files import PolicyFile, Stamp, read_policy, stamp_of
from subluminal.errors import SubluminalError
from subluminal.policy.snapshot import Snapshot

if TYPE_CHECKING:  # a policy that was compiled before needs no compiler
    from subluminal.core.helper_process import Helper
    from subluminal.core.policies.compile_helper import Compiled

_PURPOSE = "policy-snapshot"
_CHECKS = b"2\0"
"""Part of every content hash. Changed when the compiler refuses what it used to accept, so that
the cache no longer answers for it."""
_RACY_NS = 50_000_000
"""A file younger than this may change again without a new time: file times have ticks of 10 ms."""
_STILL_NS = 200_000_000
"""A policy replaces another one only if its file has not changed for this long: half a policy may
compile, and a compiler is faster than some editors."""
_TURN_S = 25.0
"""Longest wait for another process that compiles: it may be suspended."""


class Load(NamedTuple):
    """A policy that came into force (`snapshot`) or was refused (`problem`), to be recorded."""

    layer: Layer
    path: str
    snapshot: Snapshot | None
    problem: str = ""


class SnapshotCache:
    """Compiled policies by the hash of the text that they were compiled from."""

    def __init__(self, places: Places) -> None:
        self._directory = os.path.join(places.cache, "policies")
        self._state_dir = places.state

    def get(self, content_hash: str) -> Snapshot | None:
        """Returns a snapshot; None if there is none that this home has sealed."""
        try:
            path = self._path(content_hash)
            text = read_sealed(path, seal_key(self._state_dir), _purpose(content_hash))
            if text is None:
                return None
            if os.access(path, os.W_OK):
                os.utime(path)  # so that core.runs.tidying keeps it
            snapshot = Snapshot.from_json(text)
            return snapshot if _has_its_packs(snapshot) else None
        except (OSError, SubluminalError):
            return None  # without the cache, compiling takes longer; nothing else changes

    def put(self, content_hash: str, snapshot: bytes) -> None:
        """Stores a snapshot, if the disk allows it."""
        try:
            path = self._path(content_hash)
            write_sealed(path, seal_key(self._state_dir), _purpose(content_hash), snapshot)
        except OSError:
            return  # with a read-only home, every start compiles

    def take_turn(self) -> int | None:
        """Returns the right to compile, as a descriptor to close; None if another process has it.

        A hundred runs that start at once need one compiler, not a hundred. If the home is not
        writable, every process compiles, and the descriptor is -1.
        """
        fd = -1
        try:
            make_private_dir(self._directory)
            fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError:
            pass  # some file systems have no locks; compiling twice is only slower
        return fd

    def _path(self, content_hash: str) -> str:
        return os.path.join(self._directory, f"{content_hash}.json")


def _purpose(content_hash: str) -> str:
    """Returns what a snapshot is sealed for: a copy of it is not valid for another text."""
    return f"{_PURPOSE} {content_hash}"


def _has_its_packs(snapshot: Snapshot) -> bool:
    """Whether the packs that a policy asks are those that it was compiled with."""
    packs = snapshot.packs
    if not packs:
        return True
    from subluminal.core.intents.index import is_current  # loads the kernel

    return is_current(packs)


class PolicyLayer:
    """Watches one file. `snapshot` is in force; `problem` is what is wrong with the newest text."""

    def __init__(self, file: PolicyFile, cache: SnapshotCache, key_file: str | None = None) -> None:
        """`key_file` has the key that the policy must be signed with, if it must."""
        self.file = file
        self._key_file = key_file
        self.snapshot: Snapshot | None = None
        self.problem = ""
        self._cache = cache
        self._stamp: Stamp | None = None
        self._read_at: Stamp | None = None
        self._content_hash = ""
        self._compiling: Helper | None = None
        self._waiting: tuple[bytes, float] | None = None
        """the text to compile when it is this process' turn, and the deadline of that wait"""
        self._turn = -1
        self._ready: Compiled | Snapshot | None = None
        """an answer that comes into force once the file has been still for a while"""
        self._is_dropped = False
        """whether a fork has cut its compilation off, and nobody has looked at the file since"""

    @property
    def is_awaited(self) -> bool:
        """Whether calls wait for this layer: it is being compiled, and no older version exists."""
        is_busy = self._is_busy or self._is_dropped
        return bool(is_busy and not self.snapshot and not self.problem)

    @property
    def _is_busy(self) -> bool:
        return not (self._compiling is None and self._waiting is None and self._ready is None)

    @property
    def _is_young(self) -> bool:
        """Whether the file may still be being written, while an older version is in force."""
        if self.snapshot is None or self._read_at is None:
            return False
        return 0 <= time.time_ns() - self._read_at.mtime_ns < _STILL_NS

    def give_up_waiting(self) -> None:
        """Makes the layer refuse calls until the compiler is done, instead of holding them."""
        if self.is_awaited:
            self.problem = "it is still being compiled"

    def follow(self, file: PolicyFile) -> None:
        """Watches another file of the layer from now on, such as a nearer one that appeared."""
        if file != self.file:
            self.file = file
            self._stamp = None

    def look(self) -> list[Load]:
        """Checks the file's stamp, and starts to compile new content."""
        found = self._looked()
        self._is_dropped = False
        return found

    def _looked(self) -> list[Load]:
        stamp = stamp_of(self.file.path)
        if self._is_busy or (stamp == self._stamp and stamp is not None):
            return []  # a change during a compilation is seen when it is done
        if stamp is None:
            self._stamp = None
            return self._missing()
        is_racy = time.time_ns() - stamp.mtime_ns < _RACY_NS
        self._stamp = None if is_racy else stamp
        self._read_at = stamp
        try:
            data = read_policy(self.file.path)
        except OSError as error:
            self._stamp, self._content_hash = None, ""  # permissions change without a new stamp
            return self._refuse(f"cannot be read: {(error.strerror or str(error)).lower()}")
        return self._take(data)

    def _take(self, data: bytes) -> list[Load]:
        # The name is hashed too, because the compiler tells bundle from snapshot by the name.
        name = os.fsencode(os.path.basename(self.file.path))
        content = _CHECKS + name + b"\0" + self._signed_with() + data
        content_hash = hashlib.sha256(content).hexdigest()
        if content_hash == self._content_hash:
            return []
        self._content_hash = content_hash
        self._ready = self._cache.get(content_hash)
        if self._ready is not None:
            return self._take_ready()
        self._waiting = data, time.monotonic() + _TURN_S
        return self._wait()

    def _signed_with(self) -> bytes:
        """Returns what stands for the key in the content hash.

        A snapshot in the cache proves that its text was signed with this key, in this layer.
        """
        if self._key_file is None:
            return b""
        try:
            with open(os.path.expanduser(self._key_file), "rb", opener=plain_file) as file:
                key = file.read()
        except OSError:
            key = os.urandom(16)  # the compiler says what is wrong; nothing in the cache answers
        return hashlib.sha256(self.file.layer.encode() + b"\0" + key).digest()

    def _wait(self) -> list[Load]:
        """Starts the compiler when it is our turn, unless another process compiled the text."""
        assert self._waiting is not None
        data, until = self._waiting
        turn = self._cache.take_turn()
        cached = self._cache.get(self._content_hash)
        if cached is None and turn is None and time.monotonic() < until:
            return []
        self._waiting = None
        self._turn = -1 if turn is None else turn
        if cached is not None:
            self._end_turn()
            self._ready = cached
            return self._take_ready()
        from subluminal.core.policies import compile_helper

        try:
            self._compiling = compile_helper.start(
                self.file.path, data, self.file.layer, self._key_file
            )
        except OSError as error:
            self._end_turn()
            self._content_hash, self._stamp = "", None  # try again at the next look
            return self._refuse(f"cannot be compiled: {(error.strerror or str(error)).lower()}")
        return []

    def _end_turn(self) -> None:
        if self._turn >= 0:
            os.close(self._turn)
            self._turn = -1

    def collect(self) -> list[Load]:
        """Takes the compiler's answer, if it is ready; returns what changed."""
        if self._waiting is not None:
            return self._wait()
        if self._compiling is not None:
            from subluminal.core.policies import compile_helper

            self._ready = compile_helper.collect(self._compiling)
            if self._ready is None:
                return []
            self._compiling = None
        return self._take_ready()

    def _take_ready(self) -> list[Load]:
        """Puts an answer into force, unless the file is still young or was written meanwhile."""
        ready = self._ready
        if ready is None or self._is_young:
            return []
        self._ready = None
        try:
            if self._is_changed():
                return self._again()
            return self._take_answer(ready)
        finally:
            if not self._is_busy:  # a compilation that began meanwhile needs the turn
                self._end_turn()

    def _is_changed(self) -> bool:
        return stamp_of(self.file.path) not in (None, self._read_at)

    def _again(self) -> list[Load]:
        """Starts again, because the file was written while it was being compiled.

        What was read may have been half a file, and half a policy may compile. The policy in force
        stays until the file has not changed for a while, nor during its compilation.
        """
        self._content_hash, self._stamp = "", None
        self._end_turn()
        return self.look()

    def _take_answer(self, compiled: "Compiled | Snapshot") -> list[Load]:
        if isinstance(compiled, Snapshot):
            return self._accept(compiled)
        if compiled.snapshot is None:
            return self._refuse(compiled.problem)
        self._cache.put(self._content_hash, compiled.snapshot)
        return self._accept(Snapshot.from_json(compiled.snapshot))

    def close(self) -> None:
        """Kills a compiler that still runs."""
        if self._compiling is not None:
            from subluminal.core.helper_process import end

            end(self._compiling)
            self._compiling = None
        self._waiting = self._ready = None
        self._end_turn()

    def drop_inherited(self) -> None:
        """Forgets a compiler that a forked child inherited; the child starts its own."""
        if not self._is_busy:
            return
        if self._compiling is not None:
            os.close(self._compiling.fd)
            self._compiling = None
        self._waiting = self._ready = self._stamp = None
        self._content_hash = ""
        self._is_dropped = True
        self._end_turn()

    def _missing(self) -> list[Load]:
        """Keeps a deleted policy in force: removing a file must not loosen a run."""
        if self.snapshot or self.problem or not self.file.explicit:
            return []
        return self._refuse("there is no such file")

    def _accept(self, snapshot: Snapshot) -> list[Load]:
        self.problem = ""
        self.snapshot = snapshot
        return [Load(self.file.layer, self.file.path, snapshot)]

    def _refuse(self, problem: str) -> list[Load]:
        if self.problem == problem:
            return []
        self.problem = problem
        return [Load(self.file.layer, self.file.path, None, problem)]
