"""The policies in force for a shim: found, compiled, cached by content, reloaded (D16, D17).

Nothing here waits: `poll` looks at the files now and then, and takes a compiler's answer when it
is there. The old snapshot stays in force until the new one is ready; one that does not compile
never replaces it.
"""

import hashlib
import os
from typing import NamedTuple

from subluminal.config.places import Places
from subluminal.contracts.decision import Decision
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, Severity
from subluminal.core import compile_helper
from subluminal.core.policy_files import PolicyFile, Stamp, policy_files, read_policy, stamp_of
from subluminal.core.sealed import read_sealed, seal_key, write_sealed
from subluminal.errors import SubluminalError
from subluminal.policy.evaluation import Engine
from subluminal.policy.snapshot import Snapshot

LOOK_EVERY_MS = 250
"""How often file times are looked at, at most."""

_PURPOSE = "policy-snapshot"


class Load(NamedTuple):
    """Something that came into force, or was refused; the shim records it."""

    layer: Layer
    path: str
    snapshot: Snapshot | None
    problem: str = ""


class _LayerState:
    """One policy file: what was last seen of it, and what is in force from it."""

    def __init__(self, file: PolicyFile) -> None:
        self.file = file
        self.stamp: Stamp | None = None
        self.snapshot: Snapshot | None = None
        self.problem = ""
        self.compiling: compile_helper.Compilation | None = None
        self.content_hash = ""


class Policies:
    """Watches the policy files of one shim and keeps an engine for them."""

    def __init__(
        self, places: Places, identity: Identity, cwd: str, explicit: str | None = None
    ) -> None:
        self._places = places
        self._identity = identity
        self._layers = [_LayerState(file) for file in policy_files(places, cwd, explicit)]
        self._next_look_ms = 0
        self._first_seen: Snapshot | None = None
        self._pin_path: str | None = None
        self.engine = Engine([], identity)

    @property
    def loading(self) -> bool:
        """Whether a policy is being compiled that has no older version in force."""
        return any(
            layer.compiling and not layer.snapshot and not layer.problem for layer in self._layers
        )

    def give_up_waiting(self) -> None:
        """Lets nothing wait any longer: what has no policy yet is refused until it has (D16)."""
        for layer in self._layers:
            if layer.compiling and not layer.snapshot:
                layer.problem = layer.problem or "it is still being compiled"

    @property
    def compiling_fds(self) -> list[int]:
        """Where answers come from; poll these."""
        return [layer.compiling.fd for layer in self._layers if layer.compiling]

    @property
    def refusal(self) -> Decision | None:
        """Why every call is refused: a policy that never compiled must not mean `allow`."""
        for layer in self._layers:
            if layer.problem and not layer.snapshot:
                return Decision(
                    action=Action.BLOCK,
                    rule_id=None,
                    severity=Severity.CRITICAL,
                    reason_code=ReasonCode.EVALUATION_ERROR,
                    summary=f"the policy `{layer.file.path}` is not in force: {layer.problem}",
                )
        return None

    def pin(self, path: str) -> None:
        """Binds the repository's layer to what the run first saw of it (D17).

        A repository, and the agent that edits it, may tighten a run's policy, never loosen it.
        """
        self._pin_path = path
        self._hold_first_seen()
        self._rebuild()

    def poll(self, mono_ms: int, *, force: bool = False) -> list[Load]:
        """Looks at the files if it is time, and at the compilers; returns what changed."""
        loads: list[Load] = []
        if force or mono_ms >= self._next_look_ms:
            self._next_look_ms = mono_ms + LOOK_EVERY_MS
            for layer in self._layers:
                loads += self._look(layer)
        for layer in self._layers:
            loads += self._collect(layer)
        if any(load.snapshot for load in loads) or (loads and force):
            self._hold_first_seen()
            self._rebuild()
        return loads

    def _look(self, layer: _LayerState) -> list[Load]:
        stamp = stamp_of(layer.file.path)
        if stamp == layer.stamp:
            return self._missing(layer) if stamp is None else []
        if layer.compiling:
            return []  # the next look will see the newest
        layer.stamp = stamp
        if stamp is None:
            return self._missing(layer)
        try:
            data = read_policy(layer.file.path)
        except OSError as error:
            return self._refuse(layer, f"cannot be read: {(error.strerror or '').lower()}")
        layer.content_hash = hashlib.sha256(data).hexdigest()
        cached = self._cached(layer)
        if cached is not None:
            return self._accept(layer, cached)
        layer.compiling = compile_helper.start(layer.file.path, data)
        return []

    def _missing(self, layer: _LayerState) -> list[Load]:
        """A deleted policy stays in force: removing a file must not loosen a run."""
        if layer.snapshot or layer.problem or not layer.file.explicit:
            return []
        return self._refuse(layer, "there is no such file")

    def _collect(self, layer: _LayerState) -> list[Load]:
        if layer.compiling is None:
            return []
        compiled = compile_helper.collect(layer.compiling)
        if compiled is None:
            return []
        layer.compiling = None
        if compiled.snapshot is None:
            return self._refuse(layer, compiled.problem)
        self._cache(layer, compiled.snapshot)
        return self._accept(layer, Snapshot.from_json(compiled.snapshot))

    def _accept(self, layer: _LayerState, snapshot: Snapshot) -> list[Load]:
        layer.problem = ""
        layer.snapshot = snapshot
        return [Load(layer.file.layer, layer.file.path, snapshot)]

    def _refuse(self, layer: _LayerState, problem: str) -> list[Load]:
        if layer.problem == problem:
            return []
        layer.problem = problem
        return [Load(layer.file.layer, layer.file.path, None, problem)]

    def _cache_path(self, layer: _LayerState) -> str:
        return os.path.join(self._places.cache, "policies", f"{layer.content_hash}.json")

    def _cached(self, layer: _LayerState) -> Snapshot | None:
        try:
            key = seal_key(self._places.state)
            text = read_sealed(self._cache_path(layer), key, _PURPOSE)
            return Snapshot.from_json(text) if text is not None else None
        except (OSError, SubluminalError):
            return None  # a cache that cannot be used is only slower

    def _cache(self, layer: _LayerState, snapshot: bytes) -> None:
        try:
            key = seal_key(self._places.state)
            write_sealed(self._cache_path(layer), key, _PURPOSE, snapshot)
        except OSError:
            return  # a read-only home compiles each time

    def _hold_first_seen(self) -> None:
        if self._pin_path is None or self._first_seen is not None:
            return
        current = next(
            (
                layer.snapshot
                for layer in self._layers
                if layer.file.layer is Layer.REPOSITORY and not layer.file.explicit
            ),
            None,
        )
        if current is None:
            return
        try:
            key = seal_key(self._places.state)
            pinned = read_sealed(self._pin_path, key, _PURPOSE)
            if pinned is None:
                write_sealed(self._pin_path, key, _PURPOSE, current.to_json())
        except OSError:
            pinned = None
        self._first_seen = current if pinned is None else Snapshot.from_json(pinned)

    def _rebuild(self) -> None:
        layers = [(layer.file.layer, layer.snapshot) for layer in self._layers if layer.snapshot]
        first = self._first_seen
        if first is not None and all(first.policy_hash != each.policy_hash for _, each in layers):
            layers.append((Layer.REPOSITORY, first))
        self.engine = Engine(layers, self._identity)
