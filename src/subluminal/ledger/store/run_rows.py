"""Writes `runs`. A run is shared by shims, so its rows merge in any order:

the earliest run_start says how it began, the latest run_end how it ended (shared-runs).
"""

import apsw
from msgspec import UNSET

from subluminal.contracts.events import Event, RunEnd, RunStart
from subluminal.ledger.ingest.batch import Batch, RunDelta
from subluminal.ledger.ingest.deriving import json_text
from subluminal.ledger.store.timestamps import readable_ms

_SEEN = (
    "INSERT INTO runs (run_id, agent_id, client, env, principal, started_at, workload_json, "
    "last_event_at, calls) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET "
    "last_event_at = max(last_event_at, excluded.last_event_at), calls = calls + excluded.calls, "
    "started_at = iif(mode IS NULL, min(started_at, excluded.started_at), started_at)"
)
_STARTED = (
    "UPDATE runs SET started_at = ?1, agent_id = ?2, client = ?3, env = ?4, principal = ?5, "
    "mode = ?6, policy_id = ?7, policy_version = ?8, policy_hash = ?9, metadata_json = ?10, "
    "workload_json = ?11 WHERE run_id = ?12 AND (mode IS NULL OR started_at > ?1)"
)
_ENDED = (
    "UPDATE runs SET ended_at = ?1, status = ?2, summary_json = ?3 "
    "WHERE run_id = ?4 AND (ended_at IS NULL OR ended_at <= ?1)"
)


def write(connection: apsw.Connection, batch: Batch) -> None:
    """Writes what a batch says about runs."""
    connection.executemany(_SEEN, [_seen(run_id, run) for run_id, run in batch.runs.items()])
    starts = [start for run in batch.runs.values() for start in run.starts]
    ends = [end for run in batch.runs.values() for end in run.ends]
    connection.executemany(_STARTED, map(started_row, starts))
    connection.executemany(_ENDED, map(ended_row, ends))


def _who(event: Event) -> tuple[str, str, str, str | None]:
    principal = None if event.principal is UNSET else event.principal
    return event.agent_id, event.client, event.env, principal


def _workload(event: Event) -> str | None:
    return None if event.workload is UNSET else json_text(event.workload)


def _seen(run_id: str, run: RunDelta) -> tuple[object, ...]:
    who = _who(run.seen)
    return (run_id, *who, run.first_ms, _workload(run.seen), run.last_ms, run.calls)


def started_row(event: RunStart) -> tuple[object, ...]:
    run = event.run
    meta = None if run.meta is UNSET else json_text(run.meta)
    policy = (run.policy.policy_id, run.policy.policy_version, run.policy.policy_hash)
    started = start_ms(event)
    return (started, *_who(event), run.mode, *policy, meta, _workload(event), event.run_id)


def ended_row(event: RunEnd) -> tuple[object, ...]:
    return (end_ms(event), event.run.status, json_text(event.run.summary), event.run_id)


def start_ms(event: RunStart) -> int:
    """When a run began; the event's own time if it says something unreadable."""
    return readable_ms(event.run.started_at, event.ts)


def end_ms(event: RunEnd) -> int:
    """When a run ended, likewise."""
    return readable_ms(event.run.ended_at, event.ts)
