"""Chooses the policies that decide a recorded call again: the candidate and the recorded layers.

The candidate takes the layer that the caller names. Otherwise it takes the layer of the policy with
the same policy_id in that run. Otherwise it replaces all layers. Other layers stay as recorded
(policy-layers).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from subluminal.contracts.agents import AgentFacts
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.gate import Gate
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer
from subluminal.policy.evaluation import Engine
from subluminal.policy.pack_engine import PackEngine
from subluminal.policy.predicates import applies
from subluminal.policy.replay.hidden_agents import HiddenAgents
from subluminal.policy.replay.hidden_args import Possibilities
from subluminal.policy.replay.recorded import AskedLayer, RecordedAgent, RecordedCall, RecordedLoad
from subluminal.policy.snapshot import AGENT_MATCHERS, GIVEN_MATCHERS, Snapshot

FindSnapshot = Callable[[str], Snapshot | None]
"""Returns the compiled policy with a hash; None if it is not in the record."""

_Asked = tuple[tuple[AskedLayer, ...], PolicyRef | None, RecordedAgent | None]
_MAX_KEPT = 64
_ORDER = list(Layer)
_T = TypeVar("_T")


class Setting(NamedTuple):
    """The policies that decide a call again."""

    engine: Engine
    """the policies"""
    possibilities: Possibilities
    """values of hidden arguments that can make a difference"""
    missing: frozenset[str]
    """hashes of policies that are not in the record, and so not in the engine"""
    is_as_recorded: bool
    """whether these are exactly the policies of the record"""
    may_end_run: bool
    """whether one of their rules can end a run"""
    hidden_agents: HiddenAgents | None
    """finds calls that need facts which are not on record; None if no rule asks for any"""


class _Placed(NamedTuple):
    layers: list[tuple[Layer, Snapshot]]
    missing: frozenset[str]
    is_as_recorded: bool


class Layering:
    """Puts the candidate into the layers of each run. Caches engines: most runs share a few."""

    def __init__(
        self,
        candidate: Snapshot,
        find_snapshot: FindSnapshot,
        layer: Layer | None = None,
        gates: Sequence[Gate] = (),
    ) -> None:
        """`gates` are those that runs of this installation pass before their layers."""
        self._gates = gates
        self.candidate = candidate
        self._find = find_snapshot
        self._layer = layer
        self._placed: dict[tuple[object, ...], _Placed] = {}
        self._settings: dict[tuple[object, ...], Setting] = {}
        self.missing: set[str] = set()
        """hashes of needed policies that are not in the record"""

    def of_run(self, loads: Iterable[RecordedLoad]) -> "RunLayering":
        """Returns the layers of one run, given the policies that came into force in it."""
        layers: dict[str, Layer] = {}
        target = self._layer
        for load in loads:
            layers[load.policy_hash] = load.layer
            if target is None and load.policy_id == self.candidate.policy_id:
                target = load.layer
        return RunLayering(self, layers, target)

    def setting(
        self,
        identity: Identity,
        layers: tuple[AskedLayer, ...],
        target: Layer | None,
        pack: PolicyRef | None = None,
        agent: RecordedAgent | None = None,
    ) -> Setting:
        """Returns the policies for these layers. The candidate takes the layer `target`.

        `pack` is the one that the door asked, beside all layers. `agent` is what is known about
        the agent.
        """
        place = (layers, target)
        placed = self._placed.get(place)
        if placed is None:
            placed = _kept(self._placed, place, self._place(layers, target))
        # Of an identity, only which layers apply matters: nearly every run has another identity.
        applying = [applies(found.data["selectors"], identity) for _, found in placed.layers]
        asks_who = any(found.asks(AGENT_MATCHERS) for _, found in placed.layers)
        who = (agent, identity.env) if asks_who else None
        key = (*place, pack, who, *applying)
        setting = self._settings.get(key)
        if setting is None:
            snapshots = [snapshot for _, snapshot in placed.layers]
            made = Setting(
                self._engine(placed, identity, pack, agent),
                Possibilities(snapshots),
                placed.missing,
                placed.is_as_recorded,
                any(map(_ends_runs, snapshots)),
                HiddenAgents(snapshots) if any(map(_may_be_hidden, snapshots)) else None,
            )
            setting = _kept(self._settings, key, made)
        return setting

    def _engine(
        self,
        placed: _Placed,
        identity: Identity,
        pack: PolicyRef | None,
        agent: RecordedAgent | None,
    ) -> Engine:
        facts = AgentFacts() if agent is None else agent.facts
        if agent is not None:
            identity = replace(identity, environment=agent.environment)
        if pack is None:
            return Engine(placed.layers, identity, self._gates, facts)
        return PackEngine(placed.layers, identity, self._gates, facts, pack=pack)

    def _place(self, layers: tuple[AskedLayer, ...], target: Layer | None) -> _Placed:
        placed: list[tuple[Layer, Snapshot]] = []
        missing = set()
        for layer, policy_hash in self._with_candidate(layers, target):
            is_candidate = policy_hash == self.candidate.policy_hash
            found = self.candidate if is_candidate else self._find(policy_hash)
            if found is None:
                missing.add(policy_hash)
            else:
                placed.append((layer, found))
        self.missing |= missing
        hashes = [found.policy_hash for _, found in placed]
        as_recorded = hashes == [each.policy_hash for each in layers]
        return _Placed(placed, frozenset(missing), as_recorded)

    def _with_candidate(
        self, layers: tuple[AskedLayer, ...], target: Layer | None
    ) -> list[tuple[Layer, str]]:
        own_hash = self.candidate.policy_hash
        if target is None:
            return [(Layer.REPOSITORY, own_hash)]
        found: list[tuple[Layer, str]] = []
        for each in layers:
            layer = each.layer or Layer.REPOSITORY
            if layer is not target:
                found.append((layer, each.policy_hash))
        # Layers are in order. The repository's policy as first seen by the run comes last.
        before = sum(_ORDER.index(layer) < _ORDER.index(target) for layer, _ in found)
        return [*found[:before], (target, own_hash), *found[before:]]


class RunLayering:
    """The policy layers of one run."""

    def __init__(self, layering: Layering, layers: dict[str, Layer], target: Layer | None) -> None:
        self._layering = layering
        self._layers = layers
        self._target = target
        self._last: tuple[Identity, _Asked, Setting] | None = None
        self.agent: RecordedAgent | None = None
        """what is known about the agent of the run; None if the record does not say"""
        self.stands_for_others = False
        """whether the candidate replaced policies with another policy_id"""

    def setting(self, call: RecordedCall) -> Setting:
        """Returns the policies for one call, which are usually those of the call before."""
        asked = call.decision.layers
        pack = None if call.decision.pack is None else call.decision.pack.ref
        key = (asked, pack, self.agent)
        last = self._last
        if last is not None and last[0] is call.identity and last[1] == key:
            return last[2]
        layers = tuple(
            each._replace(layer=self._layers.get(each.policy_hash)) if each.layer is None else each
            for each in asked
        )
        target = self._target_of(layers)
        if target is None and layers:
            self.stands_for_others = True
        found = self._layering.setting(call.identity, layers, target, pack, self.agent)
        self._last = (call.identity, key, found)
        return found

    def _target_of(self, layers: tuple[AskedLayer, ...]) -> Layer | None:
        own = self._layering.candidate.policy_id
        if self._target is None and any(each.policy_id == own for each in layers):
            return next(each.layer for each in layers if each.policy_id == own) or Layer.REPOSITORY
        return self._target


def _kept(cache: dict[tuple[object, ...], _T], key: tuple[object, ...], made: _T) -> _T:
    if len(cache) >= _MAX_KEPT:
        cache.clear()
    cache[key] = made
    return made


def _may_be_hidden(snapshot: Snapshot) -> bool:
    return snapshot.asks((*AGENT_MATCHERS, *GIVEN_MATCHERS, "text"))


def _ends_runs(snapshot: Snapshot) -> bool:
    return any(
        Action.TERMINATE_RUN in (effect.get("on_exceed"), effect.get("on_trip"))
        for rule in snapshot.data["rules"]
        for effect in rule["effect"].values()
        if isinstance(effect, dict)
    )
