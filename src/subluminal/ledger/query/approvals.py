"""Finds approvals with their answers, and moves of the kill switch: the history.

The approvals that are pending now are in files of the home (`sub approvals`). This history agrees
with those files.
"""

from typing import Any

import apsw

from subluminal.clock import rfc3339
from subluminal.contracts.vocabulary import Action, ApprovalAnswer
from subluminal.ledger.filter.language import Filter
from subluminal.ledger.query.paging import after_cursor, order_by
from subluminal.ledger.query.questions import (
    ApprovalState,
    InvalidQuery,
    Paging,
    checked,
    cursor_of,
    numbers_of,
)
from subluminal.ledger.query.records import (
    AnswerRecord,
    ApprovalPage,
    ApprovalRecord,
    SwitchPage,
    SwitchRecord,
)
from subluminal.ledger.query.terms import term_conditions

_FIELDS = (
    "run",
    "server",
    "tool",
    "rule",
    "reason",
    "severity",
    "call",
    "hash",
    "agent",
    "client",
    "env",
    "principal",
    "since",
    "until",
)

# Every new attempt of the call extends a pending approval, until one is asked for under a new id.
_LAST_TRY = f"""
  SELECT max(c.created_at) FROM tool_calls c INDEXED BY calls_by_args
  WHERE c.args_hash = a.args_hash
  AND c.run_id = a.run_id AND c.server_name = a.server_name AND c.tool_name = a.tool_name
  AND c.decision = '{Action.REJECT_WITH_HINT}' AND c.created_at < ifnull((
    SELECT min(b.requested_at) FROM approvals b
    WHERE b.run_id = a.run_id AND b.args_hash = a.args_hash AND b.server_name = a.server_name
    AND b.tool_name = a.tool_name AND b.layer = a.layer AND b.rule_id = a.rule_id
    AND b.requested_at > a.requested_at
  ), {2**62})"""
_ASKED = f"""
  SELECT a.*, a.requested_at AS created_at, d.answer, d.decided_at, d.decided_by, d.reason,
    d.ticket, d.grant_id, d.uses, d.expires_at AS granted_until,
    (SELECT count(*) FROM grant_uses u WHERE u.grant_id = d.grant_id) AS used,
    iif(d.answer IS NULL AND a.expires_at <= :now, max(a.expires_at, ifnull(
      ({_LAST_TRY}) + a.expires_at - a.requested_at, 0)), a.expires_at) AS waits_until
  FROM approvals a LEFT JOIN approval_answers d ON (d.shim, d.n) = (
    SELECT x.shim, x.n FROM approval_answers x WHERE x.approval_id = a.approval_id
    ORDER BY x.decided_at DESC, x.shim DESC, x.n DESC LIMIT 1)"""
_STATE = f"""CASE
  WHEN answer IS NULL AND waits_until > :now THEN '{ApprovalState.PENDING}'
  WHEN answer IS NULL THEN '{ApprovalState.EXPIRED}'
  WHEN answer = '{ApprovalAnswer.DENIED}' THEN '{ApprovalState.DENIED}'
  WHEN used >= uses THEN '{ApprovalState.USED}'
  WHEN granted_until > :now THEN '{ApprovalState.APPROVED}'
  ELSE '{ApprovalState.EXPIRED}' END"""
_COLUMNS = (
    "a.id, a.approval_id, a.run_id, a.server_name, a.tool_name, a.args_hash, p.args_preview, "
    "a.rule_id, a.reason_code, a.requested_at, a.waits_until, a.state, a.layer, a.requirement, "
    "a.severity, a.message, a.approver_role, a.call_id, r.agent_id, r.client, r.env, r.principal, "
    "a.answer, a.decided_at, a.decided_by, a.reason, a.ticket, a.grant_id, a.uses, a.used, "
    "a.granted_until"
)
_REQUESTED_AT = 9
_HEAD = ApprovalRecord.__struct_fields__.index("answer")


def find_approvals(
    connection: apsw.Connection,
    paging: Paging,
    now_ms: int,
    said: Filter = (),
    state: ApprovalState | None = None,
) -> ApprovalPage:
    """One page of approvals, ordered by when they were first asked for."""
    checked(paging)
    where, values = _conditions(said)
    if state is not None:
        where.append("a.state = :state")
    if paging.cursor is not None:
        sign = "<" if paging.newest_first else ">"
        where.append(f"(a.requested_at, a.id) {sign} (:last_at, :last)")
        values["last_at"], values["last"] = numbers_of(paging.cursor, 2)
    sql = (
        f"WITH asked AS ({_ASKED}), a AS (SELECT *, {_STATE} AS state FROM asked) "
        f"SELECT {_COLUMNS} FROM a LEFT JOIN runs r ON r.run_id = a.run_id "
        "LEFT JOIN previews p ON p.id = (SELECT max(c.id) FROM tool_calls c "
        "WHERE c.call_id = a.call_id AND c.run_id = a.run_id) "
        f"WHERE {' AND '.join(where) or '1'} "
        f"{order_by(paging, 'a.requested_at', 'a.id')} LIMIT :limit"
    )
    asked = {**values, "now": now_ms, "state": state, "limit": paging.limit}
    rows = list(connection.execute(sql, asked))
    more = len(rows) == paging.limit
    last = cursor_of(rows[-1][_REQUESTED_AT], rows[-1][0]) if more else None
    return ApprovalPage([_approval(row) for row in rows], last)


def _conditions(said: Filter) -> tuple[list[str], dict[str, object]]:
    where: list[str] = []
    values: dict[str, object] = {}
    for term in said:
        if term.field not in _FIELDS:
            raise InvalidQuery(
                f"approvals cannot be filtered by `{term.field}`", hint=f"use {', '.join(_FIELDS)}"
            )
    for condition, asked in term_conditions(said, "a."):
        # Named, because the statement has named parameters already.
        for value in asked:
            name = f"v{len(values)}"
            condition = condition.replace("?", f":{name}", 1)
            values[name] = value
        where.append(condition)
    return where, values


def _approval(row: tuple[Any, ...]) -> ApprovalRecord:
    _, *told = row
    head, answered = told[:_HEAD], told[_HEAD:]
    for name in ("requested_at", "expires_at"):
        place = ApprovalRecord.__struct_fields__.index(name)
        head[place] = rfc3339(head[place])
    return ApprovalRecord(*[*head, _answer(answered)])


def _answer(told: list[Any]) -> AnswerRecord | None:
    answer, decided_at, by, reason, ticket, grant_id, uses, used, expires_at = told
    if answer is None:
        return None
    said = (answer, rfc3339(decided_at), by, reason, ticket)
    until = None if expires_at is None else rfc3339(expires_at)
    return AnswerRecord(*said, grant_id, uses, used, until)


def find_switches(connection: apsw.Connection, paging: Paging) -> SwitchPage:
    """One page of moves of the kill switch, in the order of time."""
    checked(paging)
    where, values = after_cursor(paging, "moved_at", "id")
    sql = (
        "SELECT id, switch_id, state, scope, target, moved_by, hard, reason, moved_at "
        f"FROM switches WHERE {' AND '.join(where) or '1'} "
        f"{order_by(paging, 'moved_at', 'id')} LIMIT ?"
    )
    rows = list(connection.execute(sql, (*values, paging.limit)))
    records = [
        SwitchRecord(switch_id, state, scope, target, by, bool(hard), reason, rfc3339(at))
        for _, switch_id, state, scope, target, by, hard, reason, at in rows
    ]
    more = len(rows) == paging.limit
    return SwitchPage(records, cursor_of(rows[-1][-1], rows[-1][0]) if more else None)
