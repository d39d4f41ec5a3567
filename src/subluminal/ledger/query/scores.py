"""Runs as a scoreboard: what was decided in each, and how bad the worst of it was."""

from typing import Any

import apsw
from msgspec import Struct

from subluminal.contracts.vocabulary import Action, Severity, Status
from subluminal.ledger.query.filters import Paging
from subluminal.ledger.query.records import RunRecord
from subluminal.ledger.query.runs import RunFilter, find_runs
from subluminal.ledger.store.timestamps import to_ms

_SEVERITIES = [str(member) for member in Severity]


class Score(Struct, frozen=True):
    """One run and its calls, counted."""

    run: RunRecord
    decisions: dict[str, int]
    """calls by decision"""
    errors: int
    """calls that were forwarded and did not end OK"""
    unknown: int
    """calls that were forwarded and have no end"""
    worst_severity: str | None
    """of what was not simply allowed"""
    duration_ms: int
    """up to its last event, while it runs"""


class ScorePage(Struct, frozen=True):
    """Scores, and where the next page begins."""

    runs: list[Score]
    next: str | None


class _Counts:
    def __init__(self) -> None:
        self.decisions: dict[str, int] = {}
        self.errors = 0
        self.unknown = 0
        self.worst = -1

    def add(self, decision: str, status: str, severity: str, calls: int) -> None:
        if not decision:
            return
        self.decisions[decision] = self.decisions.get(decision, 0) + calls
        if decision != Action.ALLOW:
            if severity in _SEVERITIES:
                self.worst = max(self.worst, _SEVERITIES.index(severity))
        elif not status:
            self.unknown += calls
        elif status != Status.OK:
            self.errors += calls


def find_scores(connection: apsw.Connection, wanted: RunFilter, paging: Paging) -> ScorePage:
    """One page of the scoreboard."""
    page = find_runs(connection, wanted, paging)
    counts = _count(connection, [run.run_id for run in page.runs])
    return ScorePage([_score(run, counts[run.run_id]) for run in page.runs], page.next)


def _count(connection: apsw.Connection, run_ids: list[str]) -> dict[str, _Counts]:
    found = {run_id: _Counts() for run_id in run_ids}
    sql = (
        "SELECT run_id, ifnull(decision, ''), ifnull(status, ''), ifnull(severity, ''), count(*) "
        "FROM tool_calls INDEXED BY calls_by_run "
        f"WHERE run_id IN ({', '.join('?' * len(run_ids))}) GROUP BY 1, 2, 3, 4"
    )
    if run_ids:
        rows: Any = connection.execute(sql, run_ids)
        for run_id, decision, status, severity, calls in rows:
            found[run_id].add(decision, status, severity, calls)
    return found


def _score(run: RunRecord, counts: _Counts) -> Score:
    return Score(
        run,
        counts.decisions,
        counts.errors,
        counts.unknown,
        _SEVERITIES[counts.worst] if counts.worst >= 0 else None,
        max(0, to_ms(run.ended_at or run.last_event_at) - to_ms(run.started_at)),
    )
