"""The policies in force for a host: found, watched and reloaded (policy-layers, fast-start).

Nothing here waits: `poll` checks the files at intervals, and takes a compiler's answer when it is
ready. The old snapshot stays in force until the new one is ready. A policy that does not compile
never replaces one.
"""

from typing import TYPE_CHECKING

from subluminal.config.places import Places
from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.decision import Decision, PolicyRef
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, Severity
from subluminal.core.policies.files import PolicyFile, policy_files
from subluminal.core.policies.layer import Load, PolicyLayer, SnapshotCache
from subluminal.core.policies.pins import Pin, SeenPolicy
from subluminal.policy.evaluation import Engine
from subluminal.policy.snapshot import Snapshot

if TYPE_CHECKING:  # loaded only if a rule asks about the agent
    from collections.abc import Callable, Sequence

    from subluminal.core.acting.acting import Acting, Actor

_Layers = list[tuple[Layer, Snapshot]]

_NOBODY = AgentFacts()
LOOK_EVERY_MS = 250
"""Shortest time between two checks of the files."""


class Policies:
    """Watches the policy files of one host, and makes an engine for each of its runs."""

    def __init__(
        self,
        places: Places,
        identity: Identity,
        cwd: str,
        explicit: str | None = None,
        *,
        pack: PolicyRef | None = None,
        switch: Decision | None = None,
        has_token: bool = False,
        key_file: str | None = None,
    ) -> None:
        """`pack` is the pack that the door asks about every call, if it does. `switch` is the
        refusal of every call, if the environment asks for it. `has_token` says that the agent
        has a token, which takes a while to verify. `key_file` has the key that policies must be
        signed with, if they must.
        """
        self._places = places
        self._identity = identity
        self._cwd = cwd
        self._explicit = explicit
        self._pack = pack
        self._switch = switch
        self._key_file = key_file
        self._cache = SnapshotCache(places)
        self._layers: list[PolicyLayer] = []
        self._added: list[Snapshot] = []
        self._pins: dict[str, Pin] = {}
        self._engines: dict[str, Engine] = {}
        self._has_token = has_token
        self._open_acting: Callable[[], Acting] | None = None
        self._acting: Acting | None = None
        self._actors: dict[str, Actor] = {}
        self._next_look_ms = 0
        self._polls = 0
        """a number that grows whenever something may have to be awaited"""
        self._calm_at = -1
        """its value when nothing was awaited: calls of programs ask each time"""
        self.generation = 0
        """a number that grows whenever the policies in force change"""

    def act_with(self, open_acting: "Callable[[], Acting]") -> None:
        """Sets who finds out about the agent, once a rule asks."""
        self._open_acting = open_acting

    @property
    def loading(self) -> bool:
        """Whether a policy is being compiled of which no older version is in force.

        Or the agent's token is being verified, and a rule asks about the agent.
        """
        seen = self._polls
        if seen == self._calm_at:
            return False
        if any(layer.is_awaited for layer in self._layers):
            return True
        if self._acting is not None and self._acting.is_pending:
            return True
        self._calm_at = seen
        return False

    def give_up_waiting(self) -> None:
        """Makes layers that are still compiling refuse calls, instead of holding them."""
        for layer in self._layers:
            layer.give_up_waiting()
        if self._acting is not None:
            self._acting.give_up_waiting()
        self._changed()

    @property
    def problem(self) -> str | None:
        """Why every call is refused, in one sentence; None if no layer has a problem."""
        for layer in self._layers:
            if layer.problem and not layer.snapshot:
                first, *more = layer.problem.split("; ")
                rest = f" (and {len(more)} more)" if more else ""
                return f"the policy `{layer.file.path}` is not in force: {first}{rest}"
        return None

    @property
    def refusal(self) -> Decision | None:
        """The refusal of every call while a layer has a problem and no snapshot; else None.

        A policy that never compiled must not mean that calls are allowed.
        """
        if self._switch is not None:
            return self._switch
        for layer in self._layers:
            if layer.problem and not layer.snapshot:
                path = layer.file.path
                return Decision(
                    action=Action.BLOCK,
                    rule_id=None,
                    severity=Severity.CRITICAL,
                    reason_code=ReasonCode.EVALUATION_ERROR,
                    summary=f"the policy `{path}` is not in force: {layer.problem} "
                    f"(a person can see more with `sub policy lint {path}`)",
                )
        return None

    def identify(self, identity: Identity) -> None:
        """Sets whose selectors are compared, before any run is entered."""
        self._identity = identity
        self._changed()

    def engine_for(self, run_id: str) -> Engine:
        """Returns the engine of one run: every layer, and the run's pinned repository policy."""
        engine = self._engines.get(run_id)
        if engine is None:
            if run_id not in self._pins:
                self._pins[run_id] = Pin(self._places, run_id)
                self._pins[run_id].look(self._repository())
            self._engines[run_id] = engine = self._engine(self._in_force(run_id), run_id)
        return engine

    def actor_of(self, run_id: str) -> "Actor | None":
        """Returns what is known about the agent of a run; None if no rule asks."""
        return self._actors.get(run_id)

    def _engine(self, layers: _Layers, run_id: str) -> Engine:
        self._actors.pop(run_id, None)
        engine = self._engine_of(layers)
        acting = self._asked() if engine.asks_agent else None
        if acting is None:
            return engine
        self._actors[run_id] = actor = acting.in_run(run_id)
        return self._engine_of(layers, agent=actor.facts)

    def _engine_of(self, layers: _Layers, agent: AgentFacts = _NOBODY) -> Engine:
        if self._pack is None:
            return Engine(layers, self._identity, agent=agent)
        # Most doors ask no pack, and need not load this.
        from subluminal.policy.pack_engine import PackEngine

        return PackEngine(layers, self._identity, pack=self._pack, agent=agent)

    def _asked(self) -> "Acting | None":
        """Returns who knows the agent, because a rule asks."""
        if self._acting is None and self._open_acting is not None:
            self._acting = self._open_acting()
            self._acting.ask()
            self._polls += 1
        return self._acting

    def forget(self, run_id: str) -> None:
        """Drops a run that this process has left."""
        for known in (self._pins, self._engines, self._actors):
            known.pop(run_id, None)

    def poll(self, mono_ms: int, *, force: bool = False) -> list[Load]:
        """Checks the files, if it is time, and the compilers; returns what changed."""
        loads: list[Load] = []
        self._polls += 1
        if force or mono_ms >= self._next_look_ms:
            self._next_look_ms = mono_ms + LOOK_EVERY_MS
            self._find_layers()
            for layer in self._layers:
                loads += layer.look()
            loads += self._look_at_pins()
        for layer in self._layers:
            loads += layer.collect()
        if loads:
            self._look_at_pins()
            if self._has_token and self._engine_of(self._now()).asks_agent:
                self._asked()  # before the first call, which would have to wait
        is_changed = self._acting is not None and self._acting.poll(mono_ms)
        # INVARIANT: grows before and after. Who looked in between looks again.
        self._polls += 1
        if loads or is_changed:
            self._changed()
        return loads

    def close(self) -> None:
        """Kills compilers that still run."""
        for layer in self._layers:
            layer.close()
        if self._acting is not None:
            self._acting.close()

    def drop_inherited(self) -> None:
        """Forgets compilers that a forked child inherited."""
        for layer in self._layers:
            layer.drop_inherited()
        if self._acting is not None:
            self._acting.drop_inherited()
        self._next_look_ms = 0
        self._polls += 1

    def _find_layers(self) -> None:
        """Finds files that appeared. A layer whose file is gone stays (see PolicyLayer)."""
        for file in policy_files(self._places, self._cwd, self._explicit):
            known = next((each for each in self._layers if each.file.layer is file.layer), None)
            if known is None:
                self._layers.append(PolicyLayer(file, self._cache, self._key_file))
            else:
                known.follow(file)

    def _repository(self) -> SeenPolicy | None:
        for layer in self._layers:
            if layer.snapshot and _is_pinned(layer.file):
                return SeenPolicy(layer.file.path, layer.snapshot)
        return None

    def _look_at_pins(self) -> list[Load]:
        current = self._repository()
        moved = [pin.look(current) for pin in self._pins.values()]
        if current is None or not any(moved):
            return []
        # A person accepted the current policy, or another shim had pinned an older one.
        return [Load(Layer.REPOSITORY, current.path, current.snapshot)]

    def add(self, snapshots: "Sequence[Snapshot]") -> None:
        """Puts policies of the program itself into force, beside the files and in place of those
        that it added before."""
        self._added = list(snapshots)
        self._changed()

    def _now(self) -> _Layers:
        found = [(each.file.layer, each.snapshot) for each in self._layers if each.snapshot]
        return [*found, *((Layer.REPOSITORY, each) for each in self._added)]

    def _in_force(self, run_id: str) -> _Layers:
        layers = self._now()
        first = self._pins[run_id].first_seen
        if self._explicit or first is None:
            return layers
        if all(first.snapshot.policy_hash != each.policy_hash for _, each in layers):
            layers.append((Layer.REPOSITORY, first.snapshot))
        return layers

    def _changed(self) -> None:
        self.generation += 1
        self._engines.clear()


def _is_pinned(file: PolicyFile) -> bool:
    return file.layer is Layer.REPOSITORY and not file.explicit
