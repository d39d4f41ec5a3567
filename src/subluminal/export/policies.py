"""The policies that a run was under, with their rules, out of its policy_loaded events."""

from typing import Any

import msgspec

from subluminal.contracts.vocabulary import Layer
from subluminal.errors import SubluminalError
from subluminal.policy.snapshot import Snapshot

_LAYERS = [layer.value for layer in Layer]


class _Load(msgspec.Struct, frozen=True):
    ok: bool = False
    layer: str = ""
    mode: str = ""
    file: str = ""
    problem: str = ""


class _Ref(msgspec.Struct, frozen=True):
    policy_id: str = ""
    policy_version: str = ""
    policy_hash: str = ""


class _Loaded(msgspec.Struct, frozen=True):
    load: _Load
    policy: _Ref = _Ref()
    snapshot: msgspec.Raw = msgspec.Raw(b"")


_decode = msgspec.json.Decoder(_Loaded).decode


class UsedPolicy:
    """One policy, by its hash."""

    def __init__(self, ref: _Ref, mode: str) -> None:
        self.policy_id = ref.policy_id
        self.policy_version = ref.policy_version
        self.policy_hash = ref.policy_hash
        self.mode = mode
        self.layers: set[str] = set()
        self.files: set[str] = set()
        self.snapshot: Snapshot | None = None
        """None where the event did not carry it"""
        self._rule_ids: frozenset[str] = frozenset()

    def learn(self, snapshot: Snapshot | None) -> None:
        """Takes in its rules."""
        self.snapshot = snapshot
        self._rule_ids = frozenset(rule["rule_id"] for rule in self.rules)

    @property
    def rules(self) -> list[dict[str, Any]]:
        """Its rules in order, as compiled."""
        return self.snapshot.data["rules"] if self.snapshot else []

    def has(self, rule_id: str) -> bool:
        """Whether it is known to have this rule."""
        return rule_id in self._rule_ids

    def place(self) -> tuple[int, str, str, str]:
        """Where it stands among others: by layer, then by name."""
        first = min((_LAYERS.index(each) for each in self.layers if each in _LAYERS), default=99)
        return first, self.policy_id, self.policy_version, self.policy_hash

    def as_dict(self) -> dict[str, Any]:
        """As a summary tells it."""
        return {
            "policy_id": self.policy_id,
            "policy_version": self.policy_version,
            "policy_hash": self.policy_hash,
            "mode": self.mode,
            "layers": sorted(self.layers, key=_LAYERS.index),
            "files": sorted(self.files),
            "rules": len(self.rules) if self.snapshot else None,
        }


class UsedPolicies:
    """All of them, and what was refused."""

    def __init__(self) -> None:
        self._by_hash: dict[str, UsedPolicy] = {}
        self.problems: set[tuple[str, str]] = set()
        """(file, why it was not taken)"""

    def add(self, line: bytes) -> None:
        """Takes in one policy_loaded event."""
        event = _decode(line)
        load, ref = event.load, event.policy
        if not load.ok:
            self.problems.add((load.file, load.problem))
            return
        used = self._by_hash.setdefault(ref.policy_hash, UsedPolicy(ref, load.mode))
        if load.layer in _LAYERS:
            used.layers.add(load.layer)
        if load.file:
            used.files.add(load.file)
        if used.snapshot is None and event.snapshot:
            used.learn(_snapshot(bytes(event.snapshot), ref.policy_hash))

    def all(self) -> list[UsedPolicy]:
        """Every policy, in an order that does not depend on time."""
        return sorted(self._by_hash.values(), key=UsedPolicy.place)

    def owner(self, policy_hash: str, rule_id: str) -> str:
        """The hash of the policy that a rule is in.

        A decision names the layer that decided; what an observing layer would have done is told
        with the rule alone.
        """
        named = self._by_hash.get(policy_hash)
        if named is not None and named.has(rule_id):
            return policy_hash
        return next((each.policy_hash for each in self.all() if each.has(rule_id)), policy_hash)


def _snapshot(text: bytes, policy_hash: str) -> Snapshot | None:
    """The snapshot in an event, if it is the one that the event names."""
    try:
        found = Snapshot.from_json(text)
    except SubluminalError:
        return None  # written by another version; its hash still names it
    return found if found.policy_hash == policy_hash else None
