"""One layer's policy file: what was last seen of it, and what is in force from it (D16).

A file that is deleted, unreadable or wrong leaves in force what was: only a policy that compiles
replaces a policy. Compiled snapshots are cached by content, under this home's seal.
"""

import hashlib
import os
import time
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.contracts.vocabulary import Layer
from subluminal.core import compile_helper
from subluminal.core.policy_files import PolicyFile, Stamp, read_policy, stamp_of
from subluminal.core.sealed import read_sealed, seal_key, write_sealed
from subluminal.errors import SubluminalError
from subluminal.policy.snapshot import Snapshot

_PURPOSE = "policy-snapshot"
_RACY_NS = 50_000_000
"""File times have ticks of up to 10 ms: a file this young may change again with no new time."""


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

    @property
    def is_awaited(self) -> bool:
        """Whether calls may wait for this: it is being compiled, and nothing older is in force."""
        return bool(self._compiling and not self.snapshot and not self.problem)

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
        if self._compiling or (stamp == self._stamp and stamp is not None):
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
        try:
            self._compiling = compile_helper.start(self.file.path, data)
        except OSError as error:
            self._content_hash, self._stamp = "", None  # try again at the next look
            return self._refuse(f"cannot be compiled: {(error.strerror or str(error)).lower()}")
        return []

    def collect(self) -> list[Load]:
        """Takes the compiler's answer if it is there."""
        if self._compiling is None:
            return []
        compiled = compile_helper.collect(self._compiling)
        if compiled is None:
            return []
        self._compiling = None
        if stamp_of(self.file.path) not in (None, self._read_at):
            # Written meanwhile: what was read may have been half of it, and half a policy may well
            # compile. What is in force stays until the file has held still for one compilation.
            self._content_hash, self._stamp = "", None
            return self.look()
        if compiled.snapshot is None:
            return self._refuse(compiled.problem)
        self._cache.put(self._content_hash, compiled.snapshot)
        return self._accept(Snapshot.from_json(compiled.snapshot))

    def close(self) -> None:
        """Ends a compiler that still runs."""
        if self._compiling is not None:
            compile_helper.end(self._compiling)
            self._compiling = None

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
