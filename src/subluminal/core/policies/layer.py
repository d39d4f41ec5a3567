"""One layer's policy file: what was last seen of it, and what is in force from it (fast-start).

A file that is deleted, unreadable or wrong leaves in force what was: only a policy that compiles
replaces a policy. Compiled snapshots are cached by content, under this home's seal.
"""

import fcntl
import hashlib
import os
import time
from typing import NamedTuple

from subluminal.config.places import Places, make_private_dir
from subluminal.contracts.vocabulary import Layer
from subluminal.core.controls.sealed import read_sealed, seal_key, write_sealed
from subluminal.core.policies import compile_helper
from subluminal.core.policies.files import PolicyFile, Stamp, read_policy, stamp_of
from subluminal.errors import SubluminalError
from subluminal.policy.snapshot import Snapshot

_PURPOSE = "policy-snapshot"
_RACY_NS = 50_000_000
"""File times have ticks of up to 10 ms: a file this young may change again with no new time."""
_TURN_S = 25.0
"""How long to wait for another process that compiles; it may be stopped, and must not stop us."""


class Load(NamedTuple):
    """Something that came into force, or was refused; the shim records it."""

    layer: Layer
    path: str
    snapshot: Snapshot | None
    problem: str = ""


class SnapshotCache:
    """Compiled policies by the hash of what they were compiled from."""

    def __init__(self, places: Places) -> None:
        self._directory = os.path.join(places.cache, "policies")
        self._state_dir = places.state

    def get(self, content_hash: str) -> Snapshot | None:
        """Returns a snapshot; None if there is none, or this home did not write it."""
        try:
            path = self._path(content_hash)
            text = read_sealed(path, seal_key(self._state_dir), _PURPOSE)
            if text is None:
                return None
            if os.access(path, os.W_OK):
                os.utime(path)  # what is used is not old (core.tidying)
            return Snapshot.from_json(text)
        except (OSError, SubluminalError):
            return None  # a cache that cannot be used is only slower

    def put(self, content_hash: str, snapshot: bytes) -> None:
        """Keeps a snapshot, if there is room."""
        try:
            write_sealed(self._path(content_hash), seal_key(self._state_dir), _PURPOSE, snapshot)
        except OSError:
            return  # a read-only home compiles each time

    def take_turn(self) -> int | None:
        """The right to compile, as a descriptor to be closed; None while another process has it.

        A hundred runs that begin at once need one compiler, not a hundred. Where the home cannot
        be written everybody compiles, and the descriptor is -1.
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
            pass  # it is a courtesy only; some file systems have no locks
        return fd

    def _path(self, content_hash: str) -> str:
        return os.path.join(self._directory, f"{content_hash}.json")


class PolicyLayer:
    """Watches one file. `snapshot` is what is in force, `problem` what is wrong with the newest."""

    def __init__(self, file: PolicyFile, cache: SnapshotCache) -> None:
        self.file = file
        self.snapshot: Snapshot | None = None
        self.problem = ""
        self._cache = cache
        self._stamp: Stamp | None = None
        self._read_at: Stamp | None = None
        self._content_hash = ""
        self._compiling: compile_helper.Compilation | None = None
        self._waiting: tuple[bytes, float] | None = None
        """what is to be compiled when it is our turn, and until when we wait for that"""
        self._turn = -1

    @property
    def is_awaited(self) -> bool:
        """Whether calls may wait for this: it is being compiled, and nothing older is in force."""
        return bool(self._is_busy and not self.snapshot and not self.problem)

    @property
    def _is_busy(self) -> bool:
        return self._compiling is not None or self._waiting is not None

    def give_up_waiting(self) -> None:
        """Refuses instead of holding, until the compiler is done."""
        if self.is_awaited:
            self.problem = "it is still being compiled"

    def follow(self, file: PolicyFile) -> None:
        """Goes over to another file of the layer, such as a nearer one that appeared."""
        if file != self.file:
            self.file = file
            self._stamp = None

    def look(self) -> list[Load]:
        """Looks at the file's times, and starts to compile what is new."""
        stamp = stamp_of(self.file.path)
        if self._is_busy or (stamp == self._stamp and stamp is not None):
            return []  # a change meanwhile is seen at the next look
        if stamp is None:
            self._stamp = None
            return self._missing()
        is_racy = time.time_ns() - stamp.mtime_ns < _RACY_NS
        self._stamp = None if is_racy else stamp
        self._read_at = stamp
        try:
            data = read_policy(self.file.path)
        except OSError as error:
            self._stamp, self._content_hash = None, ""  # permissions change without a new time
            return self._refuse(f"cannot be read: {(error.strerror or str(error)).lower()}")
        return self._take(data)

    def _take(self, data: bytes) -> list[Load]:
        # The name is part of it: a compiler tells bundle from snapshot by it.
        name = os.fsencode(os.path.basename(self.file.path))
        content_hash = hashlib.sha256(name + b"\0" + data).hexdigest()
        if content_hash == self._content_hash:
            return []
        self._content_hash = content_hash
        cached = self._cache.get(content_hash)
        if cached is not None:
            return self._accept(cached)
        self._waiting = data, time.monotonic() + _TURN_S
        return self._wait()

    def _wait(self) -> list[Load]:
        """Starts the compiler when it is our turn, unless somebody has compiled the same."""
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
            return self._again() if self._is_changed() else self._accept(cached)
        try:
            self._compiling = compile_helper.start(self.file.path, data)
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
        """Takes the compiler's answer if it is there."""
        if self._waiting is not None:
            return self._wait()
        if self._compiling is None:
            return []
        compiled = compile_helper.collect(self._compiling)
        if compiled is None:
            return []
        self._compiling = None
        try:
            return self._take_answer(compiled)
        finally:
            if not self._is_busy:  # else it is about the next turn
                self._end_turn()

    def _is_changed(self) -> bool:
        return stamp_of(self.file.path) not in (None, self._read_at)

    def _again(self) -> list[Load]:
        """Written meanwhile: what was read may have been half of it, and half a policy may well
        compile. What is in force stays until the file has held still for one compilation.
        """
        self._content_hash, self._stamp = "", None
        self._end_turn()
        return self.look()

    def _take_answer(self, compiled: compile_helper.Compiled) -> list[Load]:
        if self._is_changed():
            return self._again()
        if compiled.snapshot is None:
            return self._refuse(compiled.problem)
        self._cache.put(self._content_hash, compiled.snapshot)
        return self._accept(Snapshot.from_json(compiled.snapshot))

    def close(self) -> None:
        """Ends a compiler that still runs."""
        if self._compiling is not None:
            compile_helper.end(self._compiling)
            self._compiling = None
        self._waiting = None
        self._end_turn()

    def drop_inherited(self) -> None:
        """In a forked child: a running compiler is the parent's, so this child starts its own."""
        if not self._is_busy:
            return
        if self._compiling is not None:
            os.close(self._compiling.fd)
            self._compiling = None
        self._waiting = self._stamp = None
        self._content_hash = ""
        self._end_turn()

    def _missing(self) -> list[Load]:
        """A deleted policy stays in force: removing a file must not loosen a run."""
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
