"""Finds the policies that were in force, and their rules."""

from typing import Any

import apsw
import msgspec

from subluminal.canonical import encode, parse
from subluminal.clock import rfc3339
from subluminal.ledger.query.records import PolicyDetail, PolicyRecord

_ROWS = (
    "SELECT policy_id, version, rules_hash, mode, created_at, "
    "json_array_length(rules_json, '$.rules') FROM policy_versions "
)


def list_policies(connection: apsw.Connection) -> list[PolicyRecord]:
    """Every policy that was in force, newest first."""
    sql = f"{_ROWS} ORDER BY created_at DESC, policy_id, version, rules_hash"
    return [_record(row) for row in connection.execute(sql)]


def show_policy(connection: apsw.Connection, policy_hash: str) -> PolicyDetail | None:
    """One policy with its rules; None if the ledger does not have it."""
    row = connection.execute(f"{_ROWS} WHERE rules_hash = ?", (policy_hash,)).fetchone()
    if row is None:
        return None
    text = find_policy(connection, policy_hash)
    return PolicyDetail(_record(row), None if text is None else msgspec.json.decode(text))


def find_policy(connection: apsw.Connection, policy_hash: str) -> bytes | None:
    """The compiled policy with this hash, for `Snapshot.from_json`; None if no event has it."""
    sql = "SELECT rules_json FROM policy_versions WHERE rules_hash = ? AND rules_json IS NOT NULL"
    row = connection.execute(sql, (policy_hash,)).fetchone()
    if row is None:
        return None
    data = parse(str(row[0]).encode()).value
    return encode({**data, "policy_hash": policy_hash})


def _record(row: tuple[Any, ...]) -> PolicyRecord:
    policy_id, version, rules_hash, mode, at, rules = row
    return PolicyRecord(policy_id, version, rules_hash, mode, rfc3339(at), rules)
