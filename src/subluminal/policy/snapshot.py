"""A compiled policy, which shims load and decide by (Pack 2.6).

A snapshot is plain data with a hash of its canonical bytes. It travels as JSON and loads without a
YAML parser.
"""

from collections.abc import Sequence
from typing import Any

from subluminal.canonical import digest, encode, parse
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.vocabulary import Mode
from subluminal.errors import SubluminalError

SNAPSHOT_FORMAT = 1
"""Increased whenever the layout of a snapshot changes, so that a cached one is never misread."""

TARGETS_FORMAT = 2
"""Format of a snapshot that tests targets: a version that does not know them refuses it."""

TAINT_FORMAT = 3
"""Format of a snapshot that speaks of the run's level. It may test targets too."""

KERNEL_FORMAT = 4
"""Format of a snapshot that asks packs. It may test targets and levels too."""

TRUST_FORMAT = 5
"""Format of a snapshot that speaks of agents, of what arguments say, of sequences, of sliding
windows or of its own end. It may have all of the above."""

_FORMATS = (SNAPSHOT_FORMAT, TARGETS_FORMAT, TAINT_FORMAT, KERNEL_FORMAT, TRUST_FORMAT)

REGISTRY_MATCHERS = (
    "registered",
    "agent_type",
    "agent_roles_any",
    "trust_level_min",
    "delegation_depth_min",
)
"""Matchers about facts of the registry of agents."""
AGENT_MATCHERS = ("environment", *REGISTRY_MATCHERS)
"""Matchers about who acts, which are settled as selectors are."""
GIVEN_MATCHERS = ("tool_provider", "data_labels_any", "context")
"""Matchers about what a door or a program says of a call, in the order in which they are tested."""

NO_POLICY_ID = "none"
"""The `policy_id` of a run without a policy. No bundle may have it."""


class Snapshot:
    """One compiled policy. Never change `data`: `policy_hash` covers it."""

    __slots__ = ("data", "mode", "policy_hash", "policy_id", "ref", "version")

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.policy_id: str = data["policy_id"]
        self.version: str = data["version"]
        self.mode = Mode(data["mode"])
        self.policy_hash = digest(data)
        self.ref = PolicyRef(
            policy_id=self.policy_id, policy_version=self.version, policy_hash=self.policy_hash
        )

    @property
    def packs(self) -> dict[str, str]:
        """The packs that the policy asks, with their fingerprints."""
        if self.data["format"] < KERNEL_FORMAT:
            return {}
        effects = (rule["effect"].get("kernel") for rule in self.data["rules"])
        return {asked["pack"]: asked["fingerprint"] for asked in effects if asked is not None}

    def asks(self, matchers: Sequence[str]) -> bool:
        """Whether a rule has one of these matchers, which are those of TRUST_FORMAT."""
        return self.data["format"] >= TRUST_FORMAT and any(
            name in rule["match"] for rule in self.data["rules"] for name in matchers
        )

    def to_json(self) -> bytes:
        """Writes the snapshot as canonical JSON, with its hash."""
        return encode({**self.data, "policy_hash": self.policy_hash})

    @classmethod
    def from_json(cls, text: bytes) -> "Snapshot":
        """Reads a snapshot. Raises SubluminalError if its hash does not match its contents."""
        data = parse(text).value
        if not isinstance(data, dict) or "policy_hash" not in data:
            raise SubluminalError(
                "not a compiled policy: `policy_hash` is missing",
                hint="compile a bundle with `sub policy compile`",
            )
        claimed = data.pop("policy_hash")
        if data.get("format") not in _FORMATS:
            raise SubluminalError(
                "the snapshot was compiled by another version of `sub`",
                hint="compile the bundle again with `sub policy compile`",
            )
        if digest(data) != claimed:
            raise SubluminalError(
                "the snapshot's policy_hash does not match its contents",
                hint="the snapshot was edited; compile the bundle again with `sub policy compile`",
            )
        return cls(data)


EMPTY_SNAPSHOT = Snapshot(
    {
        "format": SNAPSHOT_FORMAT,
        "policy_id": NO_POLICY_ID,
        "version": "0",
        "mode": Mode.OBSERVE.value,
        "defaults": {"decision_on_error": "ALLOW", "fail_open_read_tools": False},
        "selectors": {"env": [], "agent_id": [], "client": [], "workload": None},
        "rules": [],
    }
)
"""The policy of a run without a policy: the bundle `{policy_id: none, version: "0", mode: observe,
defaults: {decision_on_error: ALLOW}, selectors: {}, rules: []}`, compiled."""
