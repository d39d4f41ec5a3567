"""The rows of spec 001 section 11.3 as structs. Field order is column order: a row is its tuple.

They hold no containers, so the garbage collector need not look at them (`gc=False`).
"""

from msgspec import Struct

BUCKET_MS = 60_000
"""Rollups count calls by the minute."""


class Call(Struct, gc=False):
    """A row of `tool_calls`. Filled by up to three events."""

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


def columns(row: type[Struct]) -> str:
    """The columns of a row, for SQL."""
    return ", ".join(row.__struct_fields__)


def marks(row: type[Struct]) -> str:
    """As many parameters as a row has columns, for SQL."""
    return ", ".join("?" * len(row.__struct_fields__))


RollupKey = tuple[int, str, str, str, str, str]


def rollup_key(call: Call) -> RollupKey:
    """The count that a call belongs to."""
    return (
        call.created_at // BUCKET_MS,
        call.server_name,
        call.tool_name,
        call.decision or "",
        call.status or "",
        call.rule_id or "",
    )
