"""A compiled policy (Pack 2.6): what shims load, decide by, and name in every event.

Plain data with a hash over its canonical bytes, so it travels as JSON and loads without YAML.
"""

from typing import Any

from subluminal.canonical import digest, encode, parse
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.vocabulary import Mode
from subluminal.errors import SubluminalError

SNAPSHOT_FORMAT = 1
"""Raised when the layout of a snapshot changes, so that a cached one is never misread."""


class Snapshot:
    """One compiled policy. Treat `data` as frozen: `policy_hash` covers it."""

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

    def to_json(self) -> bytes:
        """Writes the snapshot canonically, with its hash."""
        return encode({**self.data, "policy_hash": self.policy_hash})

    @classmethod
    def from_json(cls, text: bytes) -> "Snapshot":
        """Reads a snapshot, and refuses one that is not what its hash says."""
        data = parse(text).value
        if not isinstance(data, dict) or "policy_hash" not in data:
            raise SubluminalError("this is not a compiled policy: it has no `policy_hash`")
        claimed = data.pop("policy_hash")
        if data.get("format") != SNAPSHOT_FORMAT:
            raise SubluminalError(
                "this snapshot was compiled by another version of sub",
                hint="compile it again with `sub policy compile`",
            )
        if digest(data) != claimed:
            raise SubluminalError(
                "the snapshot's policy_hash does not match its contents",
                hint="it was edited after it was compiled; compile the bundle again",
            )
        return cls(data)
