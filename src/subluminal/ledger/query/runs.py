"""Finds runs."""

from typing import Any

import apsw
import msgspec
from msgspec import Struct

from subluminal.clock import rfc3339
from subluminal.ledger.filter.language import Filter
from subluminal.ledger.query.filters import Paging, checked, cursor_of, numbers_of
from subluminal.ledger.query.records import RunPage, RunRecord
from subluminal.ledger.query.terms import run_conditions

_RUNS = (
    "SELECT id, run_id, agent_id, client, env, principal, started_at, ended_at, status, mode, "
    "policy_id, policy_version, policy_hash, metadata_json, workload_json, summary_json, "
    "last_event_at, calls FROM runs "
)


class RunFilter(Struct, frozen=True, kw_only=True):
    """Which runs. All that is given must hold."""

    agent: str | None = None
    client: str | None = None
    env: str | None = None
    status: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    terms: Filter = ()
    """what the filter language says"""


def find_runs(connection: apsw.Connection, wanted: RunFilter, paging: Paging) -> RunPage:
    """One page of runs, in the order in which the ledger first heard of them."""
    checked(paging)
    terms: list[tuple[str, object]] = [
        (where, value)
        for where, value in (
            ("agent_id = ?", wanted.agent),
            ("client = ?", wanted.client),
            ("env = ?", wanted.env),
            ("status = ?", wanted.status),
            ("started_at >= ?", wanted.since_ms),
            ("started_at < ?", wanted.until_ms),
        )
        if value is not None
    ]
    if paging.cursor is not None:
        (last,) = numbers_of(paging.cursor, 1)
        terms.append(("id < ?" if paging.newest_first else "id > ?", last))
    said = run_conditions(wanted.terms)
    where = " AND ".join([*(term for term, _ in terms), *(each for each, _ in said)]) or "1"
    direction = "DESC" if paging.newest_first else "ASC"
    sql = f"{_RUNS} WHERE {where} ORDER BY id {direction} LIMIT ?"
    values = [*(value for _, value in terms), *(value for _, more in said for value in more)]
    arguments = [*values, paging.limit]
    records = [_record(row) for row in connection.execute(sql, arguments)]
    more = len(records) == paging.limit
    return RunPage(records, cursor_of(records[-1].id) if more else None)


def show_run(connection: apsw.Connection, run_id: str) -> RunRecord | None:
    """One run."""
    row = connection.execute(f"{_RUNS} WHERE run_id = ?", (run_id,)).fetchone()
    return None if row is None else _record(row)


def _record(row: tuple[Any, ...]) -> RunRecord:
    values = list(row)
    for index in (6, 7, 16):
        at = values[index]
        values[index] = rfc3339(at) if isinstance(at, int) else None
    for index in (13, 14, 15):
        text = values[index]
        values[index] = msgspec.json.decode(text) if isinstance(text, str) else None
    return RunRecord(*values)
