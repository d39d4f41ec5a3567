"""Finds intents: what packs decided about calls, a page at a time in the order of time."""

from typing import Any

import apsw

from subluminal.clock import rfc3339
from subluminal.ledger.query.paging import after_cursor, order_by
from subluminal.ledger.query.questions import IntentFilter, Paging, checked, cursor_of
from subluminal.ledger.query.records import IntentPage, IntentRecord
from subluminal.ledger.query.terms import Condition, intent_conditions

_COLUMNS = ", ".join(
    f"i.{'created_at' if name == 'ts' else name}" for name in IntentRecord.__struct_fields__
)
_ROWS = f"SELECT {_COLUMNS} FROM intents i JOIN tool_calls c ON c.id = i.id "


def find_intents(connection: apsw.Connection, wanted: IntentFilter, paging: Paging) -> IntentPage:
    """One page of intents, in the order of their calls' start."""
    checked(paging)
    after, cursor = after_cursor(paging, "i.created_at", "i.id")
    conditions = [*_given(wanted), *intent_conditions(wanted.terms)]
    terms = [*after, *(condition for condition, _ in conditions)]
    values = [*cursor, *(value for _, asked in conditions for value in asked)]
    where = f"WHERE {' AND '.join(terms)} " if terms else ""
    sql = f"{_ROWS}{where}{order_by(paging, 'i.created_at', 'i.id')} LIMIT ?"
    rows = list(connection.execute(sql, (*values, paging.limit)))
    more = len(rows) == paging.limit
    last = cursor_of(rows[-1][1], rows[-1][0]) if more else None
    return IntentPage([_record(row) for row in rows], last)


def _given(wanted: IntentFilter) -> list[Condition]:
    asked = (
        ("i.run_id = ?", wanted.run),
        ("i.pack = ?", wanted.pack),
        ("i.created_at >= ?", wanted.since_ms),
        ("i.created_at < ?", wanted.until_ms),
    )
    return [(condition, [value]) for condition, value in asked if value is not None]


def _record(row: tuple[Any, ...]) -> IntentRecord:
    number, at, *rest = row
    return IntentRecord(number, rfc3339(at), *rest)
