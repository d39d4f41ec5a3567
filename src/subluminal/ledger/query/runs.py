"""Finds runs: as they are stored, or as a scoreboard with their calls counted."""

from typing import Any

import apsw
import msgspec

from subluminal.clock import rfc3339
from subluminal.contracts.vocabulary import Action, ErrorClass, Severity, Status
from subluminal.ledger.query.paging import after_cursor, order_by
from subluminal.ledger.query.questions import (
    Paging,
    RunFilter,
    checked,
    cursor_of,
)
from subluminal.ledger.query.records import RunPage, RunRecord, Score, ScorePage
from subluminal.ledger.query.terms import run_conditions
from subluminal.timestamps import parse_rfc3339

_RUNS = (
    "SELECT id, run_id, agent_id, client, env, principal, started_at, ended_at, status, mode, "
    "policy_id, policy_version, policy_hash, metadata_json, workload_json, summary_json, "
    "last_event_at, calls, agent_json FROM runs "
)
_STARTED_AT = 6
_SEVERITIES = [str(member) for member in Severity]


def find_runs(connection: apsw.Connection, wanted: RunFilter, paging: Paging) -> RunPage:
    """One page of runs, ordered by their start, then by when the ledger first heard of them."""
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
    said = run_conditions(wanted.terms)
    after, cursor = after_cursor(paging, "started_at", "id")
    parts = [*(term for term, _ in terms), *(each for each, _ in said), *after]
    order = order_by(paging, "started_at", "id")
    sql = f"{_RUNS} WHERE {' AND '.join(parts) or '1'} {order} LIMIT ?"
    values = [*(value for _, value in terms), *(value for _, more in said for value in more)]
    rows = list(connection.execute(sql, [*values, *cursor, paging.limit]))
    more = len(rows) == paging.limit
    last = cursor_of(rows[-1][_STARTED_AT], rows[-1][0]) if more else None
    return RunPage([_record(row) for row in rows], last)


def show_run(connection: apsw.Connection, run_id: str) -> RunRecord | None:
    """One run; None if the ledger does not have it."""
    row = connection.execute(f"{_RUNS} WHERE run_id = ?", (run_id,)).fetchone()
    return None if row is None else _record(row)


def find_scores(connection: apsw.Connection, wanted: RunFilter, paging: Paging) -> ScorePage:
    """One page of the scoreboard."""
    page = find_runs(connection, wanted, paging)
    counts = _count(connection, [run.run_id for run in page.runs])
    return ScorePage([_score(run, counts[run.run_id]) for run in page.runs], page.next)


def _record(row: tuple[Any, ...]) -> RunRecord:
    values = list(row)
    for index in (6, 7, 16):
        at = values[index]
        values[index] = rfc3339(at) if isinstance(at, int) else None
    for index in (13, 14, 15, 18):
        text = values[index]
        values[index] = msgspec.json.decode(text) if isinstance(text, str) else None
    return RunRecord(*values)


class _Counts:
    def __init__(self) -> None:
        self.decisions: dict[str, int] = {}
        self.errors = 0
        self.unknown = 0
        self.worst = -1
        self.doors: set[str] = set()

    def add(
        self, decision: str, status: str, error: str, severity: str, door: str, calls: int
    ) -> None:
        if door:
            self.doors.add(door)
        if not decision:
            return
        self.decisions[decision] = self.decisions.get(decision, 0) + calls
        if decision != Action.ALLOW:
            if severity in _SEVERITIES:
                self.worst = max(self.worst, _SEVERITIES.index(severity))
        elif not status or (status == Status.ERROR and error == ErrorClass.UNKNOWN):
            self.unknown += calls
        elif status != Status.OK:
            self.errors += calls


def _count(connection: apsw.Connection, run_ids: list[str]) -> dict[str, _Counts]:
    found = {run_id: _Counts() for run_id in run_ids}
    sql = (
        "SELECT run_id, ifnull(decision, ''), ifnull(status, ''), ifnull(error_class, ''), "
        "ifnull(severity, ''), ifnull(transport, ''), count(*) "
        "FROM tool_calls INDEXED BY calls_by_run "
        f"WHERE run_id IN ({', '.join('?' * len(run_ids))}) GROUP BY 1, 2, 3, 4, 5, 6"
    )
    if run_ids:
        rows: Any = connection.execute(sql, run_ids)
        for run_id, *counted in rows:
            found[run_id].add(*counted)
    return found


def _score(run: RunRecord, counts: _Counts) -> Score:
    until = parse_rfc3339(run.ended_at or run.last_event_at)
    return Score(
        run,
        counts.decisions,
        counts.errors,
        counts.unknown,
        _SEVERITIES[counts.worst] if counts.worst >= 0 else None,
        max(0, until - parse_rfc3339(run.started_at)),
        sorted(counts.doors),
    )
