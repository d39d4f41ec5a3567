"""Which rows of calls, previews and hints follow from which events.

Pure: ingest writes with it, verify proves with it. A start always begins a new row. A decision or
an end belongs to the latest row with its call_id from the same shim; if there is none, it begins
one. But the end of a call that was handed over belongs to a row of the shim that it names
(`begun_by`), and waits until that row is there; an end from the row's own shim goes before it.
"""

import msgspec
from msgspec import UNSET

from subluminal.contracts.decision import Hint
from subluminal.contracts.events import CallRound, HintIssued
from subluminal.contracts.vocabulary import Action
from subluminal.ledger.ingest.rows import OUT_OF_RANGE, Call, HintRow, Previews
from subluminal.ledger.ingest.wire import CallDecision, CallEnd, CallStart, Hinted


def begin(event: CallStart, row_id: int, shim: int, n: int, at_ms: int) -> Call:
    """The row of a call that has just started. Raises ValueError if a number is out of range."""
    call = event.call
    if (call.bytes_in | call.seq) >> 63:
        raise ValueError(OUT_OF_RANGE)
    # Positional, in column order, for speed: this runs for every call.
    row = Call(
        row_id,
        call.call_id,
        event.run_id,
        call.server_name,
        call.tool_name,
        call.args_hash,
        None,
        None,
        None,
        None,
        call.bytes_in,
        None,
        1 if call.preview.truncated else 0,
        at_ms,
        None,
        None,
        None,
        None,
        call.seq,
        call.transport,
        shim,
        n,
    )
    if call.retry_of is not UNSET:
        row.retry_of = call.retry_of
    return row


def begin_unseen(event: CallDecision | CallEnd, row_id: int, shim: int, at_ms: int) -> Call:
    """The row of a call whose start never arrived."""
    call = event.call
    return Call(
        row_id,
        call.call_id,
        event.run_id,
        call.server_name,
        call.tool_name,
        call.args_hash,
        created_at=at_ms,
        shim=shim,
    )


def is_refused(event: CallRound) -> bool:
    """Whether a round was refused: then its decision is the one that counts for the call."""
    return event.decision.action is not Action.ALLOW


def decide(row: Call, event: CallDecision | CallRound, n: int) -> None:
    """Writes a decision into the row of its call."""
    decision = event.decision
    row.decision = decision.action
    row.rule_id = decision.rule_id
    row.reason_code = decision.explain.reason_code
    row.severity = decision.severity
    if decision.would_be is not UNSET:
        row.would_be = decision.would_be.action
    if decision.taint is not UNSET:
        row.taint = decision.taint
    row.decision_n = n


def finish(row: Call, event: CallEnd, n: int, end_shim: int | None = None) -> None:
    """Writes an end into the row of its call. `end_shim`: see `Call`."""
    row.status = event.status
    row.latency_ms = event.latency_ms
    row.bytes_out = event.bytes_out
    if event.preview.truncated:
        row.preview_truncated = 1
    if event.error is not UNSET:
        row.error_class = event.error.class_
    row.end_n = n
    row.end_shim = end_shim


def takes_handed_end(row: Call, event: CallEnd) -> bool:
    """Whether an end that another shim recorded belongs into this row."""
    return row.run_id == event.run_id and (row.end_n is None or row.end_shim is not None)


def add_args_preview(previews: dict[int, Previews], event: CallStart, row: Call) -> None:
    """Adds the preview of the arguments, if the start has one."""
    preview = event.call.preview
    if preview.args_preview is not UNSET:
        flags = json_text(preview.redaction_flags) if preview.redaction_flags else None
        previews[row.id] = Previews(row.id, row.call_id, preview.args_preview, None, flags)


def add_result_preview(previews: dict[int, Previews], event: CallEnd, row: Call) -> None:
    """Adds the preview of the result, if the end has one, to the row of the arguments' preview."""
    preview = event.preview
    if preview.result_preview is UNSET:
        return
    flags = json_text(preview.redaction_flags) if preview.redaction_flags else None
    early = previews.get(row.id)
    if early is None:
        previews[row.id] = Previews(row.id, row.call_id, None, preview.result_preview, flags)
        return
    early.result_preview = preview.result_preview
    if flags is not None:
        early.redaction_flags = merged_flags(early.redaction_flags, flags)


def merged_flags(one: str | None, two: str) -> str:
    """Merges two JSON lists of flags into one, sorted and without repetition."""
    flags = {*msgspec.json.decode(one or "[]"), *msgspec.json.decode(two)}
    return json_text(sorted(flags))


def hint_of_decision(event: CallDecision, row: Call) -> HintRow:
    """The row of the hint in a decision, which must have one."""
    hint = event.decision.hint
    assert hint is not UNSET
    return _hint_row(hint, row, None, row.rule_id, row.created_at)


def hint_of_event(event: HintIssued, row: Call) -> HintRow:
    """The row of the hint in a hint_issued event. `sub promote` takes its `hint_id`."""
    hint_id = None if event.hint_id is UNSET else event.hint_id
    rule_id = row.rule_id if event.rule_id is UNSET else event.rule_id
    return _hint_row(event.hint, row, hint_id, rule_id, row.created_at)


def grants_of(event: CallDecision) -> set[str]:
    """The ids of the grants that let a call pass."""
    decision = event.decision
    found = set() if decision.grant is UNSET else {decision.grant.grant_id}
    return found if decision.grants is UNSET else found | {one.grant_id for one in decision.grants}


def merge_hint(row: HintRow, later: HintRow) -> None:
    """Merges what the decision and the hint_issued event say of the same hint.

    The text is that of whichever came first; ids come from whichever has them.
    """
    row.hint_id = row.hint_id if later.hint_id is None else later.hint_id
    row.rule_id = row.rule_id if later.rule_id is None else later.rule_id


def _hint_row(
    hint: Hint | Hinted, row: Call, hint_id: str | None, rule_id: str | None, at_ms: int
) -> HintRow:
    suggested = None if hint.suggested_args is None else json_text(hint.suggested_args)
    return HintRow(
        row.id,
        row.call_id,
        row.run_id,
        hint_id,
        rule_id,
        hint.hint_kind,
        hint.hint_text,
        suggested,
        hint.retry_advice,
        at_ms,
    )


def json_text(value: object) -> str:
    """Encodes a value as JSON text, for a column."""
    return msgspec.json.encode(value).decode()
