"""The rows of spec 001 section 11.3 as structs. Field order is column order: a row is its tuple.

The structs hold no containers, so the garbage collector need not track them (`gc=False`).
"""

from msgspec import Struct

BUCKET_MS = 60_000
"""Width of a rollup bucket in milliseconds: calls are counted by the minute."""

MAX_INTEGER = 2**63 - 1
"""The largest integer that a column can hold. `value >> 63` is 0 from 0 up to this."""
OUT_OF_RANGE = "a number is out of range"


class Call(Struct, gc=False):
    """A row of `tool_calls`. Up to three events fill it."""

    id: int
    call_id: str
    run_id: str
    server_name: str
    tool_name: str
    args_hash: str
    decision: str | None = None
    rule_id: str | None = None
    status: str | None = None
    latency_ms: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    preview_truncated: int = 0
    created_at: int = 0
    reason_code: str | None = None
    severity: str | None = None
    would_be: str | None = None
    error_class: str | None = None
    seq: int | None = None
    transport: str | None = None
    shim: int = 0
    start_n: int | None = None
    decision_n: int | None = None
    end_n: int | None = None
    end_shim: int | None = None
    """the shim that recorded the end, if it is not the one that recorded the start"""
    taint: str | None = None
    retry_of: str | None = None
    """call_id of the refused call that this call repeats"""


class EndAhead(Struct, gc=False):
    """A row of `ends_ahead`: the end of another shim's call, whose start is not here yet."""

    begun_by: str
    call_id: str
    shim: int
    n: int
    event: bytes


class Previews(Struct, gc=False):
    """A row of `previews`."""

    id: int
    call_id: str
    args_preview: str | None = None
    result_preview: str | None = None
    redaction_flags: str | None = None


class HintRow(Struct, gc=False):
    """A row of `hints`."""

    id: int
    call_id: str
    run_id: str
    hint_id: str | None
    rule_id: str | None
    hint_kind: str
    hint_text: str
    suggested_args_json: str | None
    retry_advice: str | None
    created_at: int


class IntentRow(Struct, gc=False):
    """A row of `intents`."""

    id: int
    call_id: str
    run_id: str
    pack: str
    version: str
    fingerprint: str
    intent_kind: str
    intent_hash: str
    nonce: str | None
    principal: str | None
    taint: str
    decision_kind: str
    refusal_code: str | None
    guard: str | None
    divergence: str | None
    created_at: int


class AskedRow(Struct, frozen=True):
    """A row of `approvals`."""

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


ControlRow = AskedRow | AnswerRow | RefusalRow | SwitchRow

RollupKey = tuple[int, str, str, str, str, str]
"""bucket, server, tool, decision, status, rule; an empty text stands for none"""


def rollup_key(call: Call) -> RollupKey:
    """The rollup that counts a call."""
    return (
        call.created_at // BUCKET_MS,
        call.server_name,
        call.tool_name,
        call.decision or "",
        call.status or "",
        call.rule_id or "",
    )
