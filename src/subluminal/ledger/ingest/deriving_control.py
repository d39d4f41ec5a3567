"""Which rows follow from events about people's acts: approvals, grants, the kill switch.

Pure: ingest writes with it, verify proves with it.
"""

from typing import TypeVar

from msgspec import UNSET, UnsetType

from subluminal.contracts.events import (
    ApprovalDecided,
    ApprovalRequested,
    Event,
    GrantRefused,
    KillSwitch,
)
from subluminal.ledger.ingest.deriving_runs import stated_ms
from subluminal.ledger.ingest.rows import (
    MAX_INTEGER,
    OUT_OF_RANGE,
    AnswerRow,
    AskedRow,
    ControlRow,
    RefusalRow,
    SwitchRow,
)
from subluminal.timestamps import parse_rfc3339

_T = TypeVar("_T")


def control_row(event: Event) -> ControlRow | None:
    """The row of an event about a person's act; None for every other event.

    Raises ValueError if a row cannot hold the event.
    """
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
        stated_ms(asked.requested_at, event.ts),
        stated_ms(asked.expires_at, event.ts),
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
        parse_rfc3339(event.ts),
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
        None if expires_at is None else stated_ms(expires_at, event.ts),
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
        parse_rfc3339(event.ts),
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
        parse_rfc3339(event.ts),
    )


def _known(value: _T | UnsetType) -> _T | None:
    return None if value is UNSET else value
