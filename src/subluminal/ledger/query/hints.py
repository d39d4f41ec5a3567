"""Finds hints and their outcomes, and counts how often hints helped."""

from typing import Any

import apsw
import msgspec

from subluminal.clock import rfc3339
from subluminal.ledger.filter.language import Filter
from subluminal.ledger.ingest.hint_outcomes import HintOutcome
from subluminal.ledger.query.paging import after_cursor, order_by
from subluminal.ledger.query.questions import (
    Paging,
    RecoveryBy,
    checked,
    cursor_of,
)
from subluminal.ledger.query.records import HintPage, HintRecord, RecoveryRecord
from subluminal.ledger.query.terms import term_conditions

_ROWS = (
    "SELECT h.id, h.hint_id, h.call_id, h.run_id, h.rule_id, h.hint_kind, h.hint_text, "
    "h.suggested_args_json, h.retry_advice, h.created_at, h.outcome, c.server_name, c.tool_name, "
    "c.args_hash, (SELECT n.call_id FROM tool_calls n WHERE n.id = h.next_id) "
    "FROM hints h JOIN tool_calls c ON c.id = h.id "
)
_CREATED_AT = 9


def find_hints(
    connection: apsw.Connection,
    run: str | None,
    paging: Paging,
    said: Filter = (),
    outcome: HintOutcome | None = None,
) -> HintPage:
    """One page of hints, in the order of time. The filter applies to the calls that got them."""
    checked(paging)
    terms: list[str] = []
    values: list[object] = []
    for column, value in (("run_id", run), ("outcome", outcome)):
        if value is not None:
            terms.append(f"h.{column} = ?")
            values.append(value)
    after, cursor = after_cursor(paging, "h.created_at", "h.id")
    terms += after
    values += cursor
    for condition, asked in term_conditions(said, "c."):
        terms.append(condition)
        values += asked
    where = f"WHERE {' AND '.join(terms)} " if terms else ""
    sql = f"{_ROWS}{where}{order_by(paging, 'h.created_at', 'h.id')} LIMIT ?"
    rows = list(connection.execute(sql, (*values, paging.limit)))
    more = len(rows) == paging.limit
    last = cursor_of(rows[-1][_CREATED_AT], rows[-1][0]) if more else None
    return HintPage([_record(row) for row in rows], last)


def hint_of_call(connection: apsw.Connection, number: int) -> HintRecord | None:
    """The hint of a call, by its row id; None if it got none."""
    row = connection.execute(f"{_ROWS} WHERE h.id = ?", (number,)).fetchone()
    return None if row is None else _record(row)


def count_recovery(
    connection: apsw.Connection,
    by: RecoveryBy = RecoveryBy.RULE,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> list[RecoveryRecord]:
    """Counts the outcomes of hints per rule, per client or per both; most hints first."""
    counts: dict[tuple[str | None, str | None], dict[str, int]] = {}
    for rule_id, client, outcome, hints in connection.execute(*_counting(since_ms, until_ms)):
        key = (
            None if by is RecoveryBy.CLIENT else rule_id,
            None if by is RecoveryBy.RULE else client,
        )
        of_key = counts.setdefault(key, {})
        of_key[outcome] = of_key.get(outcome, 0) + hints
    records = [_recovery(*key, of_key) for key, of_key in counts.items()]
    return sorted(records, key=lambda one: (-one.issued, one.rule_id or "", one.client or ""))


def _counting(since_ms: int | None, until_ms: int | None) -> tuple[str, list[int]]:
    terms = [("created_at >= ?", since_ms), ("created_at < ?", until_ms)]
    where = " AND ".join(term for term, value in terms if value is not None)
    # Grouped by run first: an index that covers all these columns is in that order.
    sql = (
        "SELECT h.rule_id, r.client, h.outcome, sum(h.hints) FROM ("
        "SELECT run_id, rule_id, outcome, count(*) AS hints FROM hints "
        f"{f'WHERE {where} ' if where else ''}GROUP BY 1, 2, 3"
        ") h LEFT JOIN runs r ON r.run_id = h.run_id GROUP BY 1, 2, 3"
    )
    return sql, [value for _, value in terms if value is not None]


def _recovery(rule_id: str | None, client: str | None, counts: dict[str, int]) -> RecoveryRecord:
    return RecoveryRecord(
        rule_id,
        client,
        sum(counts.values()),
        *(counts.get(outcome, 0) for outcome in HintOutcome),
    )


def _record(row: tuple[Any, ...]) -> HintRecord:
    *head, suggested, advice, at, outcome, server_name, tool_name, args_hash, next_call_id = row
    suggested_args = None if suggested is None else msgspec.json.decode(suggested)
    told = [advice, rfc3339(at), outcome, server_name, tool_name, args_hash, next_call_id]
    return HintRecord(*[*head, suggested_args, *told])
