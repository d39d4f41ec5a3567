"""The three events of a call as the ledger decodes them: the fields that rows need, and no others.

Nearly all events are of these three types. Decoding these structs takes half the time of decoding
the contracts' own, which read every field. Words of closed vocabularies are plain strings here,
because the ledger stores and counts them, and does not decide by them.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, MsgspecError, Struct, UnsetType, field

from subluminal.contracts.codec import decode_event
from subluminal.contracts.events import Event, ToolCallDecision, ToolCallEnd, ToolCallStart
from subluminal.contracts.versions import is_newer_major
from subluminal.contracts.vocabulary import EventType, HintKind


class _Lean(Struct, frozen=True, gc=False):
    """Cannot be part of a reference cycle, so the garbage collector need not track it."""


class ChainPlace(_Lean, frozen=True, gc=False):
    """The fields of `source` that the chain needs."""

    shim_id: str
    n: int | None = None
    prev: str | None = None


class ArgsPreview(_Lean, frozen=True, gc=False):
    truncated: bool
    redaction_flags: list[str] | UnsetType = UNSET
    hash: str | UnsetType = UNSET
    args_preview: str | UnsetType = UNSET


class ResultPreview(_Lean, frozen=True, gc=False):
    truncated: bool
    redaction_flags: list[str] | UnsetType = UNSET
    hash: str | UnsetType = UNSET
    result_preview: str | UnsetType = UNSET


class Ref(_Lean, frozen=True, gc=False):
    call_id: str
    server_name: str
    tool_name: str
    args_hash: str


class Started(_Lean, frozen=True, gc=False):
    call_id: str
    server_name: str
    tool_name: str
    args_hash: str
    transport: str
    bytes_in: int
    seq: int
    preview: ArgsPreview
    retry_of: str | UnsetType = UNSET


class Explain(_Lean, frozen=True, gc=False):
    reason_code: str


class WouldBe(_Lean, frozen=True, gc=False):
    action: str


class Granted(_Lean, frozen=True, gc=False):
    grant_id: str


class Hinted(_Lean, frozen=True, gc=False):
    hint_text: str
    suggested_args: dict[str, Any] | None = None
    retry_advice: str | None = None
    hint_kind: str = HintKind.OTHER


class Judged(_Lean, frozen=True, gc=False):
    """The fields of `decision.kernel` that a row has."""

    pack: str
    version: str
    fingerprint: str
    intent_kind: str
    intent_hash: str
    kind: str
    taint: str
    refusal_code: str | UnsetType = UNSET
    guard: str | UnsetType = UNSET
    divergence: str | UnsetType = UNSET


class Decided(_Lean, frozen=True, gc=False):
    action: str
    rule_id: str | None
    severity: str
    explain: Explain
    hint: Hinted | UnsetType = UNSET
    would_be: WouldBe | UnsetType = UNSET
    grant: Granted | UnsetType = UNSET
    grants: list[Granted] | UnsetType = UNSET
    taint: str | UnsetType = UNSET
    kernel: Judged | UnsetType = UNSET


class Error(_Lean, frozen=True, gc=False):
    class_: str = field(name="class")


class _Event(Struct, frozen=True, gc=False, tag_field="type"):
    ts: str
    run_id: str
    source: ChainPlace
    v: str


class CallStart(_Event, frozen=True, gc=False, tag=EventType.TOOL_CALL_START.value):
    """`contracts.events.ToolCallStart`"""

    call: Started


class CallDecision(_Event, frozen=True, gc=False, tag=EventType.TOOL_CALL_DECISION.value):
    """`contracts.events.ToolCallDecision`"""

    call: Ref
    decision: Decided


class CallEnd(_Event, frozen=True, gc=False, tag=EventType.TOOL_CALL_END.value):
    """`contracts.events.ToolCallEnd`"""

    call: Ref
    status: str
    latency_ms: int
    bytes_out: int
    preview: ResultPreview
    error: Error | UnsetType = UNSET
    begun_by: str | UnsetType = UNSET


CallEvent = CallStart | CallDecision | CallEnd
RowEvent = CallEvent | Event

decode_call: Callable[[bytes], CallEvent] = msgspec.json.Decoder(CallEvent).decode
"""Decodes one event of a call. Raises msgspec.MsgspecError for any other line."""

decode_end: Callable[[bytes], CallEnd] = msgspec.json.Decoder(CallEnd).decode
"""Decodes the end of a call. Raises msgspec.MsgspecError for any other line."""

_CALL_EVENTS: tuple[Any, ...] = (ToolCallStart, ToolCallDecision, ToolCallEnd)


def decode_row_event(line: bytes) -> RowEvent | None:
    """Decodes any event: events of calls in the lean form; None if a newer version made it."""
    try:
        event = decode_call(line)
    except MsgspecError:
        return decode_event(line)
    return None if is_newer_major(event.v) else event


def lean(event: Event, line: bytes) -> RowEvent:
    """The form of a decoded event that rows are derived from."""
    return decode_call(line) if isinstance(event, _CALL_EVENTS) else event
