"""Proves the outcome of every hint: it follows from calls and runs, which other modules prove."""

from collections.abc import Iterator

import apsw
from msgspec import Struct

from subluminal.ledger.ingest.hint_outcomes import answers, judge, unanswered
from subluminal.ledger.ingest.rows import Call
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.tables import columns

_RUNS = "SELECT DISTINCT run_id FROM hints ORDER BY run_id"
_HINTS = (
    "SELECT h.id, h.call_id, h.created_at, h.suggested_args_json, h.next_id, h.outcome, "
    "r.ended_at, h.next_id IS NOT NULL AND h.next_id NOT IN (SELECT id FROM tool_calls) "
    "FROM hints h LEFT JOIN runs r ON r.run_id = h.run_id WHERE h.run_id = ?"
)
_CALLS = (
    f"SELECT {columns(Call)} FROM tool_calls WHERE run_id = ? AND decision IS NOT NULL "
    "ORDER BY server_name, tool_name, created_at, ifnull(seq, 0), id"
)


class _Stored(Struct):
    id: int
    call_id: str
    created_at: int
    suggested_json: str | None
    next_id: int | None
    outcome: str
    ended_at: int | None
    has_lost_next: int


def check_outcomes(connection: apsw.Connection, run_id: str | None, report: Report) -> None:
    """Reports hints of a run, or of all runs, whose next call or outcome is stored wrongly."""
    runs = [run_id] if run_id else [str(row[0]) for row in connection.execute(_RUNS)]
    for each in runs:
        for call_id, message in _problems(connection, each, report):
            report.add("hints", f"call `{call_id}` of run `{each}`", message)


def _problems(
    connection: apsw.Connection, run_id: str, report: Report
) -> Iterator[tuple[str, str]]:
    stored = {row[0]: _Stored(*row) for row in connection.execute(_HINTS, (run_id,))}
    calls = (Call(*row) for row in connection.execute(_CALLS, (run_id,)))
    told = {call.id: (call, following) for call, following in answers(calls, stored)}
    for hint in stored.values():
        # Retention may drop the next call before the hinted one.
        if not (hint.has_lost_next and report.dropped_events):
            problem = _problem(hint, *told.get(hint.id, (None, None)))
            if problem is not None:
                yield hint.call_id, problem


def _problem(hint: _Stored, call: Call | None, following: Call | None) -> str | None:
    if call is None or following is None:
        next_id, outcome = None, unanswered(hint.created_at, hint.ended_at)
    else:
        next_id, outcome = following.id, _judged(hint, call, following)
    if hint.next_id != next_id:
        return "`next_id` is not the next call of that tool"
    if hint.outcome != outcome:
        return f"`outcome` is `{hint.outcome}`; the calls say `{outcome}`"
    return None


def _judged(hint: _Stored, call: Call, following: Call) -> str:
    decision = following.decision
    assert decision is not None  # `_CALLS` selects decided calls only
    after = (following.args_hash, decision, following.rule_id)
    return judge(call.args_hash, call.rule_id, *after, hint.suggested_json)
