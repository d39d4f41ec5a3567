"""The three events of a call as the ledger reads them: what rows need, and nothing else.

The contracts' own structs read every field of the envelope; decoding only these takes half the
time, and they are nearly all events there are. The closed vocabularies are plain strings here: the
ledger stores and counts them, it does not decide by them.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, MsgspecError, Struct, UnsetType, field

from subluminal.contracts.codec import decode_event
from subluminal.contracts.decision import Hint
from subluminal.contracts.events import Event, ToolCallDecision, ToolCallEnd, ToolCallStart
from subluminal.contracts.vocabulary import EventType


class _Lean(Struct, frozen=True, gc=False):
    """Holds nothing that could hold it: the garbage collector need not look."""


class Place(_Lean, frozen=True, gc=False):
    """`source`, as far as the chain needs it."""

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


class Explain(_Lean, frozen=True, gc=False):
    reason_code: str


class WouldBe(_Lean, frozen=True, gc=False):
    action: str


class Granted(_Lean, frozen=True, gc=False):
    grant_id: str


class Decided(_Lean, frozen=True, gc=False):
    action: str
    rule_id: str | None
    severity: str
    explain: Explain
    hint: Hint | UnsetType = UNSET
    would_be: WouldBe | UnsetType = UNSET
    grant: Granted | UnsetType = UNSET
    grants: list[Granted] | UnsetType = UNSET


class Error(_Lean, frozen=True, gc=False):
    class_: str = field(name="class")


class _Event(Struct, frozen=True, gc=False, tag_field="type"):
    ts: str
    run_id: str
    source: Place


class CallStart(_Event, frozen=True, gc=False, tag=EventType.TOOL_CALL_START.value):
    """See contracts.events.ToolCallStart."""

    call: Started


class CallDecision(_Event, frozen=True, gc=False, tag=EventType.TOOL_CALL_DECISION.value):
    """See contracts.events.ToolCallDecision."""

    call: Ref
    decision: Decided


class CallEnd(_Event, frozen=True, gc=False, tag=EventType.TOOL_CALL_END.value):
    """See contracts.events.ToolCallEnd."""

    call: Ref
    status: str
    latency_ms: int
    bytes_out: int
    preview: ResultPreview
    error: Error | UnsetType = UNSET


CallEvent = CallStart | CallDecision | CallEnd
RowEvent = CallEvent | Event

decode_call: Callable[[bytes], CallEvent] = msgspec.json.Decoder(CallEvent).decode
"""Reads one event of a call. Raises msgspec.MsgspecError for anything else."""

_CALL_EVENTS: tuple[Any, ...] = (ToolCallStart, ToolCallDecision, ToolCallEnd)


def decode_row_event(line: bytes) -> RowEvent | None:
    """Reads any event: those of calls in the lean form, None for a type from the future."""
    try:
        return decode_call(line)
    except MsgspecError:
        return decode_event(line)


def lean(event: Event, line: bytes) -> RowEvent:
    """The form that rows are derived from, of an event that was read in full."""
    return decode_call(line) if isinstance(event, _CALL_EVENTS) else event
