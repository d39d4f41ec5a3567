"""Writes what people were asked, what they answered, and what they stopped. In any order:

of an approval or a switch that several events tell of, the earliest tells it.
"""

from typing import NamedTuple, TypeVar

import apsw
from msgspec import UNSET, Struct, UnsetType, structs

from subluminal.contracts.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    GrantRefused,
    KillSwitch,
)
from subluminal.ledger.ingest.deriving import MAX_INTEGER, OUT_OF_RANGE
from subluminal.ledger.store.rows import columns, marks
from subluminal.ledger.store.timestamps import readable_ms, to_ms

_T = TypeVar("_T")


class AskedRow(Struct, frozen=True):
    """A row of `approvals`, but for the event it comes from."""

    approval_id: str
    run_id: str
    call_id: str
    server_name: str
    tool_name: str
    args_hash: str
    layer: str
    rule_id: str
    requirement: str
    reason_code: str
    severity: str
    message: str
    approver_role: str | None
    requested_at: int
    expires_at: int


class AnswerRow(Struct, frozen=True):
    """A row of `approval_answers`."""

    approval_id: str | None
    run_id: str
    answer: str
    decided_at: int
    decided_by: str
    layer: str
    rule_id: str
    server_name: str
    tool_name: str
    args_hash: str | None
    reason: str | None
    ticket: str | None
    grant_id: str | None
    uses: int | None
    expires_at: int | None


class RefusalRow(Struct, frozen=True):
    """A row of `grant_refusals`."""

    run_id: str
    call_id: str
    server_name: str
    tool_name: str
    args_hash: str
    grant_id: str | None
    approval_id: str | None
    problem: str
    detail: str
    refused_at: int


class SwitchRow(Struct, frozen=True):
    """A row of `switches`."""

    switch_id: str
    state: str
    scope: str
    target: str | None
    moved_by: str
    hard: int
    reason: str | None
    moved_at: int


class Table(NamedTuple):
    """Where the rows of one kind of event are."""

    name: str
    row: type[Struct]
    key: tuple[str, ...]
    """what makes two rows the same; empty where every event has a row of its own"""
    time: str

    def insert(self) -> str:
        """Stores a row, or keeps the one that is there if it is earlier."""
        names = f"{columns(self.row)}, shim, n"
        sql = f"INSERT INTO {self.name} ({names}) VALUES ({marks(self.row)}, ?, ?)"
        if not self.key:
            return sql
        changes = ", ".join(f"{name} = excluded.{name}" for name in names.split(", "))
        return (
            f"{sql} ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {changes} "
            f"WHERE excluded.{self.time} < {self.name}.{self.time}"
        )


TABLES = (
    Table("approvals", AskedRow, ("approval_id",), "requested_at"),
    Table("approval_answers", AnswerRow, (), "decided_at"),
    Table("grant_refusals", RefusalRow, (), "refused_at"),
    Table("switches", SwitchRow, ("switch_id", "state"), "moved_at"),
)
_INSERTS = {table.row: table.insert() for table in TABLES}
_USED = "INSERT OR IGNORE INTO grant_uses (grant_id, id, used_at) VALUES (?, ?, ?)"


class Act(NamedTuple):
    """A row to be written, and the event that tells it."""

    row: Struct
    shim: int
    n: int


def write(connection: apsw.Connection, acts: list[Act], uses: list[tuple[str, int, int]]) -> None:
    """Writes what a batch says of people's acts; `uses` are grants with the calls that passed."""
    for act in acts:
        connection.execute(_INSERTS[type(act.row)], (*structs.astuple(act.row), act.shim, act.n))
    connection.executemany(_USED, uses)


def row_of(event: Event) -> Struct | None:
    """The row that an event tells; None if it is no such event. Raises ValueError if no row can."""
    match event:
        case ApprovalRequested():
            return _asked(event)
        case ApprovalDecided():
            return _answer(event)
        case GrantRefused():
            return _refusal(event)
        case KillSwitch():
            return _switch(event)
        case _:
            return None


def _asked(event: ApprovalRequested) -> AskedRow:
    call, asked = event.call, event.approval
    return AskedRow(
        asked.approval_id,
        event.run_id,
        call.call_id,
        call.server_name,
        call.tool_name,
        call.args_hash,
        asked.layer,
        asked.rule_id,
        asked.requirement,
        asked.reason_code,
        asked.severity,
        asked.message,
        _known(asked.approver_role),
        readable_ms(asked.requested_at, event.ts),
        readable_ms(asked.expires_at, event.ts),
    )


def _answer(event: ApprovalDecided) -> AnswerRow:
    given = event.approval
    uses = _known(given.uses)
    if uses is not None and not 0 <= uses <= MAX_INTEGER:
        raise ValueError(OUT_OF_RANGE)
    expires_at = _known(given.expires_at)
    return AnswerRow(
        _known(given.approval_id),
        event.run_id,
        given.answer,
        to_ms(event.ts),
        given.by,
        given.layer,
        given.rule_id,
        given.server_name,
        given.tool_name,
        _known(given.args_hash),
        _known(given.reason),
        _known(given.ticket),
        _known(given.grant_id),
        uses,
        None if expires_at is None else readable_ms(expires_at, event.ts),
    )


def _refusal(event: GrantRefused) -> RefusalRow:
    call, grant = event.call, event.grant
    return RefusalRow(
        event.run_id,
        call.call_id,
        call.server_name,
        call.tool_name,
        call.args_hash,
        _known(grant.grant_id),
        _known(grant.approval_id),
        grant.problem,
        grant.detail,
        to_ms(event.ts),
    )


def _switch(event: KillSwitch) -> SwitchRow:
    switch = event.switch
    return SwitchRow(
        switch.switch_id,
        switch.state,
        switch.scope,
        _known(switch.target),
        switch.by,
        int(switch.hard),
        _known(switch.reason),
        to_ms(event.ts),
    )


def _known(value: _T | UnsetType) -> _T | None:
    return None if value is UNSET else value
