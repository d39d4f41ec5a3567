"""Finds hints, and tells what came of them."""

from typing import Any

import apsw
import msgspec

from subluminal.clock import rfc3339
from subluminal.contracts.vocabulary import Action
from subluminal.ledger.filtering import Filter
from subluminal.ledger.query.filters import Paging, checked, cursor_of, numbers_of
from subluminal.ledger.query.records import HintPage, HintRecord
from subluminal.ledger.query.terms import term_conditions

# The next call of the same tool in the same run shows whether the agent took the hint.
_ROWS = (
    "SELECT h.id, h.hint_id, h.call_id, h.run_id, h.rule_id, h.hint_kind, h.hint_text, "
    "h.suggested_args_json, h.retry_advice, h.created_at, "
    "(SELECT n.decision FROM tool_calls n INDEXED BY calls_by_run WHERE n.run_id = h.run_id "
    "AND n.created_at >= c.created_at AND n.id > h.id AND n.server_name = c.server_name "
    "AND n.tool_name = c.tool_name ORDER BY n.created_at LIMIT 1), r.ended_at "
    "FROM hints h JOIN tool_calls c USING (id) LEFT JOIN runs r ON r.run_id = h.run_id "
)


def find_hints(
    connection: apsw.Connection, run: str | None, paging: Paging, said: Filter = ()
) -> HintPage:
    """One page of hints, in the order of ingest; a filter is about the calls that got them."""
    checked(paging)
    terms: list[str] = []
    values: list[object] = []
    if run is not None:
        terms.append("h.run_id = ?")
        values.append(run)
    if paging.cursor is not None:
        terms.append("h.id < ?" if paging.newest_first else "h.id > ?")
        values += numbers_of(paging.cursor, 1)
    for condition, asked in term_conditions(said, "c."):
        terms.append(condition)
        values += asked
    where = f"WHERE {' AND '.join(terms)} " if terms else ""
    direction = "DESC" if paging.newest_first else "ASC"
    sql = f"{_ROWS}{where}ORDER BY h.id {direction} LIMIT ?"
    records = [_record(row) for row in connection.execute(sql, (*values, paging.limit))]
    more = len(records) == paging.limit
    return HintPage(records, cursor_of(records[-1].id) if more else None)


def hint_of_call(connection: apsw.Connection, number: int) -> HintRecord | None:
    """The hint that a call was given."""
    row = connection.execute(f"{_ROWS} WHERE h.id = ?", (number,)).fetchone()
    return None if row is None else _record(row)


def _record(row: tuple[Any, ...]) -> HintRecord:
    *head, suggested, advice, at, next_decision, ended_at = row
    suggested_args = None if suggested is None else msgspec.json.decode(suggested)
    outcome = _outcome(next_decision, ended_at)
    return HintRecord(*[*head, suggested_args, advice, rfc3339(at), outcome])


def _outcome(next_decision: object, ended_at: object) -> str:
    if next_decision is None:
        return "pending" if ended_at is None else "gave_up"
    return "followed" if next_decision == Action.ALLOW else "retried"
