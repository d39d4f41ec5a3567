"""Writes `policy_versions`: every policy that was in force, with its rules where an event has them.

`rules_json` is the compiled policy, canonical and without its hash: SHA-256 of it is `rules_hash`.
"""

from hashlib import sha256

import apsw
from msgspec import UNSET, Raw

from subluminal.canonical import encode, parse
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.events import PolicyLoaded, RunStart
from subluminal.errors import SubluminalError
from subluminal.ledger.ingest.batch import Batch
from subluminal.ledger.store.run_rows import start_ms

_POLICY = (
    "INSERT INTO policy_versions (policy_id, version, rules_hash, mode, created_at) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
    "mode = ifnull(mode, excluded.mode), created_at = min(created_at, excluded.created_at)"
)
_IS_KEY = "policy_id = ? AND version = ? AND rules_hash = ?"
_HAS_RULES = f"SELECT rules_json IS NOT NULL FROM policy_versions WHERE {_IS_KEY}"
_RULES = f"UPDATE policy_versions SET rules_json = ? WHERE {_IS_KEY}"

PolicyKey = tuple[str, str, str]


def write(connection: apsw.Connection, batch: Batch) -> None:
    """Writes what a batch says about policies."""
    starts = [start for run in batch.runs.values() for start in run.starts]
    connection.executemany(_POLICY, map(_policy_of_start, starts))
    connection.executemany(_POLICY, [_policy_loaded(event, at) for event, at in batch.policies])
    for event, _ in batch.policies:
        key = told(event)
        if event.snapshot is not UNSET and connection.execute(_HAS_RULES, key).fetchone() == (0,):
            connection.execute(_RULES, (rules_of(event.snapshot, key[2]), *key))


def key_of(policy: PolicyRef) -> PolicyKey:
    """The row of a policy."""
    return policy.policy_id, policy.policy_version, policy.policy_hash


def told(event: PolicyLoaded) -> PolicyKey:
    """The row of a policy that came into force."""
    assert event.policy is not UNSET  # the batch takes no other
    return key_of(event.policy)


def rules_of(snapshot: Raw, rules_hash: str) -> str | None:
    """`rules_json` of a snapshot; None if it is not the one that it is said to be."""
    try:
        data = parse(bytes(snapshot)).value
        if not isinstance(data, dict):
            return None
        data.pop("policy_hash", None)
        text = encode(data)
    except (SubluminalError, ValueError):
        return None
    return text.decode() if sha256(text).hexdigest() == rules_hash else None


def _policy_of_start(event: RunStart) -> tuple[object, ...]:
    return (*key_of(event.run.policy), event.run.mode, start_ms(event))


def _policy_loaded(event: PolicyLoaded, at_ms: int) -> tuple[object, ...]:
    return (*told(event), None if event.load.mode is UNSET else event.load.mode, at_ms)
