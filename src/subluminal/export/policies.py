"""The policies that applied to a run, from its policy_loaded events, and what each rule did."""

from typing import Any, NamedTuple

import msgspec

from subluminal.contracts.vocabulary import Layer
from subluminal.errors import SubluminalError
from subluminal.export.violations import Violation
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
    """One policy, identified by its hash."""

    def __init__(self, ref: _Ref, mode: str) -> None:
        self.policy_id = ref.policy_id
        self.policy_version = ref.policy_version
        self.policy_hash = ref.policy_hash
        self.mode = mode
        self.layers: set[str] = set()
        self.files: set[str] = set()
        self.snapshot: Snapshot | None = None
        """None if the event did not contain it"""
        self._rule_ids: frozenset[str] = frozenset()

    def learn(self, snapshot: Snapshot | None) -> None:
        """Stores the compiled policy, and with it the rules."""
        self.snapshot = snapshot
        self._rule_ids = frozenset(rule["rule_id"] for rule in self.rules)

    @property
    def rules(self) -> list[dict[str, Any]]:
        """The compiled rules, in order."""
        return self.snapshot.data["rules"] if self.snapshot else []

    def has(self, rule_id: str) -> bool:
        """Whether the policy is known to have this rule."""
        return rule_id in self._rule_ids

    def place(self) -> tuple[int, str, str, str]:
        """Sort key of the policy: layer, then name, version and hash."""
        first = min((_LAYERS.index(each) for each in self.layers if each in _LAYERS), default=99)
        return first, self.policy_id, self.policy_version, self.policy_hash

    def as_dict(self) -> dict[str, Any]:
        """Returns the policy as it appears in a summary."""
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
    """All policies of a run, and the files that could not be loaded."""

    def __init__(self) -> None:
        self._by_hash: dict[str, UsedPolicy] = {}
        self.problems: set[tuple[str, str]] = set()
        """files that could not be loaded, each with the problem"""

    def add(self, line: bytes) -> None:
        """Adds one policy_loaded event."""
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
        """Returns the policies in an order that does not depend on time."""
        return sorted(self._by_hash.values(), key=UsedPolicy.place)

    def owner(self, policy_hash: str, rule_id: str) -> str:
        """Returns the hash of the policy that a rule belongs to.

        A decision names the policy that decided. When an observing policy would have decided
        otherwise, the decision names only its rule, so the rule is looked up in all policies.
        """
        named = self._by_hash.get(policy_hash)
        if named is not None and named.has(rule_id):
            return policy_hash
        return next((each.policy_hash for each in self.all() if each.has(rule_id)), policy_hash)


def _snapshot(text: bytes, policy_hash: str) -> Snapshot | None:
    """Returns the snapshot in an event if it has the hash that the event names, else None."""
    try:
        found = Snapshot.from_json(text)
    except SubluminalError:
        return None  # written by another version; the hash still identifies the policy
    return found if found.policy_hash == policy_hash else None


class _Key(NamedTuple):
    policy_hash: str
    rule_id: str


class RuleRow(msgspec.Struct, kw_only=True):
    """What one rule of one policy did in a run."""

    policy_id: str
    policy_hash: str
    rule_id: str
    kind: str | None = None
    """None if the policy itself is not on record"""
    severity: str
    message: str | None = None
    calls: int = 0
    violations: int = 0
    failures: int = 0
    """violations that reports show as failures"""


class RuleCounts:
    """Counts decisions and violations by rule."""

    def __init__(self) -> None:
        self._rows: dict[_Key, RuleRow] = {}

    def add(self, decision: dict[str, Any], violation: Violation | None) -> None:
        """Adds one decision, and its violation if there was one."""
        made = decision.get("would_be") or decision
        if made["rule_id"] is None:
            return
        policy = decision["policy"]
        key = _Key(policy["policy_hash"], made["rule_id"])
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = RuleRow(
                policy_id=policy["policy_id"], severity=made["severity"], **key._asdict()
            )
        row.calls += 1
        row.violations += violation is not None
        row.failures += violation is not None and violation.is_failure

    def rows(self, policies: UsedPolicies) -> list[RuleRow]:
        """Returns the rules of all policies, then those whose policy is not on record."""
        acted: dict[_Key, list[RuleRow]] = {}
        for row in self._rows.values():
            owner = policies.owner(row.policy_hash, row.rule_id)
            acted.setdefault(_Key(owner, row.rule_id), []).append(row)
        found = [
            RuleRow(
                policy_id=policy.policy_id,
                policy_hash=policy.policy_hash,
                rule_id=rule["rule_id"],
                kind=rule["kind"],
                severity=rule["severity"],
                message=rule["effect"].get("message"),
                calls=sum(row.calls for row in rows),
                violations=sum(row.violations for row in rows),
                failures=sum(row.failures for row in rows),
            )
            for policy in policies.all()
            for rule in policy.rules
            for rows in [acted.pop(_Key(policy.policy_hash, rule["rule_id"]), [])]
        ]
        return found + [row for _, rows in sorted(acted.items()) for row in rows]
