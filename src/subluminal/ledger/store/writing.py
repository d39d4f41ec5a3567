"""Writes the rows of a batch that are not calls: runs, policies, tools, people's acts.

Several events tell of the same row, and they may arrive in any order, so every statement merges.
The earliest run_start says how a run began, and the latest run_end how it ended (shared-runs).
"""

import apsw
from msgspec import UNSET, structs

from subluminal.ledger.ingest.batch import Batch
from subluminal.ledger.ingest.deriving_runs import (
    loaded_key,
    policy_loaded,
    policy_of_start,
    rules_of,
    run_ended,
    run_seen,
    run_started,
    tool_sights,
)
from subluminal.ledger.store.tables import CONTROL_TABLES

_RUN_SEEN = (
    "INSERT INTO runs (run_id, agent_id, client, env, principal, started_at, workload_json, "
    "last_event_at, calls) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET "
    "last_event_at = max(last_event_at, excluded.last_event_at), calls = calls + excluded.calls, "
    "started_at = iif(mode IS NULL, min(started_at, excluded.started_at), started_at)"
)
_RUN_STARTED = (
    "UPDATE runs SET started_at = ?1, agent_id = ?2, client = ?3, env = ?4, principal = ?5, "
    "mode = ?6, policy_id = ?7, policy_version = ?8, policy_hash = ?9, metadata_json = ?10, "
    "workload_json = ?11, agent_json = ?12 "
    "WHERE run_id = ?13 AND (mode IS NULL OR started_at > ?1)"
)
_RUN_ENDED = (
    "UPDATE runs SET ended_at = ?1, status = ?2, summary_json = ?3 "
    "WHERE run_id = ?4 AND (ended_at IS NULL OR ended_at <= ?1)"
)
_POLICY = (
    "INSERT INTO policy_versions (policy_id, version, rules_hash, mode, created_at) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
    "mode = ifnull(mode, excluded.mode), created_at = min(created_at, excluded.created_at)"
)
_IS_POLICY = "policy_id = ? AND version = ? AND rules_hash = ?"
_HAS_RULES = f"SELECT rules_json IS NOT NULL FROM policy_versions WHERE {_IS_POLICY}"
_RULES = f"UPDATE policy_versions SET rules_json = ? WHERE {_IS_POLICY}"
_TOOL_SEEN = (
    "INSERT INTO tool_definitions VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6) ON CONFLICT DO UPDATE SET "
    "definition_json = ifnull(definition_json, excluded.definition_json), "
    "run_id = iif(excluded.first_seen < first_seen, excluded.run_id, run_id), "
    "first_seen = min(first_seen, excluded.first_seen), "
    "last_seen = max(last_seen, excluded.last_seen)"
)
_ACTS = {table.row: table.insert() for table in CONTROL_TABLES}
_GRANT_USED = "INSERT OR IGNORE INTO grant_uses (grant_id, id, used_at) VALUES (?, ?, ?)"


def write_runs(connection: apsw.Connection, batch: Batch) -> None:
    """Writes `runs`."""
    runs = batch.runs
    connection.executemany(_RUN_SEEN, [run_seen(run_id, run) for run_id, run in runs.items()])
    starts = [start for run in runs.values() for start in run.starts]
    ends = [end for run in runs.values() for end in run.ends]
    connection.executemany(_RUN_STARTED, [(*run_started(one), one.run_id) for one in starts])
    connection.executemany(_RUN_ENDED, [(*run_ended(one), one.run_id) for one in ends])


def write_policies(connection: apsw.Connection, batch: Batch) -> None:
    """Writes `policy_versions`: every policy in force, with its rules if an event has them."""
    starts = [start for run in batch.runs.values() for start in run.starts]
    connection.executemany(_POLICY, map(policy_of_start, starts))
    connection.executemany(_POLICY, [policy_loaded(event, at) for event, at in batch.policies])
    for event, _ in batch.policies:
        key = loaded_key(event)
        if event.snapshot is not UNSET and connection.execute(_HAS_RULES, key).fetchone() == (0,):
            connection.execute(_RULES, (rules_of(event.snapshot, key[2]), *key))


def write_tools(connection: apsw.Connection, batch: Batch) -> None:
    """Writes `tool_definitions`."""
    for event, at_ms in batch.listings:
        connection.executemany(_TOOL_SEEN, tool_sights(event, at_ms))


def write_acts(connection: apsw.Connection, batch: Batch) -> None:
    """Writes approvals, their answers, refused grants, switches and the uses of grants."""
    for act in batch.acts:
        connection.execute(_ACTS[type(act.row)], (*structs.astuple(act.row), act.shim, act.n))
    connection.executemany(_GRANT_USED, batch.grant_uses)
