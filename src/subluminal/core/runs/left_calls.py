"""The calls that a killed process left without an end, found in its journal and ended there.

Nobody knows how a forwarded call ended, so its end says ERROR with the class `unknown` (Pack 1.7).
A refused call was refused, whether or not the client heard of it.
"""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Struct, field

from subluminal.contracts.events import CallRef, ErrorDetail, ResultPreview, ToolCallEnd
from subluminal.contracts.vocabulary import Action, ErrorClass, Status
from subluminal.core.runs.run import Run
from subluminal.journal.reading import files_in, lines_of
from subluminal.timestamps import parse_rfc3339

LOST = "the shim was killed before the end of the call was recorded; its outcome is unknown"
_UNDECIDED = "the shim was killed before the call was decided; it was not forwarded"

_START = b'{"type":"tool_call_start"'
_DECISIONS = (b'{"type":"tool_call_decision"', b'{"type":"call_round"')
"""A call may be refused in a further round, although it was forwarded in its first."""
END = b'{"type":"tool_call_end"'
"""How the line of an end begins."""
_RUN_END = b'{"type":"run_end"'
_HEALTH = b'{"type":"shim_health"'
_LISTED = b'{"type":"tools_listed"'
_SERVING = (b'"state":"spawned"', b'"state":"alive"')
"""The states in which a shim names its server, or the client whose hooks it serves."""
_COMPLETE = b'"calls_open":'
"""Only the process that completes a dead shim's record writes this member of a shim_health."""


class _Called(Struct, frozen=True):
    call: CallRef
    ts: str


class _Explain(Struct, frozen=True):
    summary: str


class _Decided(Struct, frozen=True):
    action: str
    explain: _Explain


class _Decision(Struct, frozen=True):
    call: CallRef
    decision: _Decided


class _Error(Struct, frozen=True):
    class_: str = field(name="class", default="")


class _Ended(Struct, frozen=True):
    call: CallRef
    status: str
    error: _Error = _Error()


class _Health(Struct, frozen=True):
    server_name: str = ""


class _HealthEvent(Struct, frozen=True):
    health: _Health


_decode_call = msgspec.json.Decoder(_Called).decode
_decode_decision = msgspec.json.Decoder(_Decision).decode
_decode_end = msgspec.json.Decoder(_Ended).decode
_decode_health = msgspec.json.Decoder(_HealthEvent).decode


class OpenCall(Struct):
    """A call without an end."""

    call: CallRef
    at_ms: int
    action: str | None = None
    summary: str = ""
    begun_by: str = ""
    """shim that recorded the start, if the dead process took the call over"""

    @property
    def is_lost(self) -> bool:
        """Whether the call was forwarded."""
        return self.action == Action.ALLOW


class LeftBehind:
    """What the journal of a dead process says."""

    def __init__(self) -> None:
        self._open: dict[str, OpenCall] = {}
        self._ended_here: set[str] = set()
        """calls that this process ended and another one began"""
        self._lost = 0
        """calls that another process has ended as lost before"""
        self._was_left = False
        self.server_name: str | None = None
        """server of the process, or None if the process is not a shim"""
        self.worked = False
        """whether the server has answered"""
        self.last_ms = 0
        """time of the last call"""

    @property
    def open(self) -> list[OpenCall]:
        """The calls without an end."""
        return list(self._open.values())

    @property
    def calls_lost(self) -> int:
        """How many calls of the dead process were forwarded and have no known outcome."""
        return self._lost + sum(call.is_lost for call in self._open.values())

    @property
    def is_closed(self) -> bool:
        """Whether the process left its run, or another process has completed its record."""
        return self._was_left and not self._open

    def add_taken(self, call: CallRef, started_ms: int, begun_by: str) -> None:
        """Adds a call that the process took over from another, unless it has recorded its end."""
        if call.call_id not in self._ended_here:
            self.last_ms = max(self.last_ms, started_ms)
            self._open[call.call_id] = OpenCall(call, started_ms, Action.ALLOW, begun_by=begun_by)

    def disown(self, call_id: str) -> None:
        """Removes a call that another process has ended, or will end."""
        self._open.pop(call_id, None)

    def add(self, line: bytes) -> None:
        """Adds the next line. Raises MsgspecError or ValueError if it is not a valid event."""
        if line.startswith(_START):
            began = _decode_call(line)
            self.last_ms = parse_rfc3339(began.ts)
            self._open[began.call.call_id] = OpenCall(began.call, self.last_ms)
        elif line.startswith(_DECISIONS):
            made = _decode_decision(line)
            call = self._open.get(made.call.call_id)
            if call is not None:
                call.action, call.summary = made.decision.action, made.decision.explain.summary
        elif line.startswith(END):
            self._end(_decode_end(line))
        elif line.startswith(_HEALTH):
            self._health(line)
        elif line.startswith(_LISTED):
            self.worked = True
        elif line.startswith(_RUN_END):
            self._was_left = True

    def _end(self, end: _Ended) -> None:
        if self._open.pop(end.call.call_id, None) is None:
            self._ended_here.add(end.call.call_id)
        self.worked |= end.status == Status.OK
        if end.status == Status.ERROR and end.error.class_ == ErrorClass.UNKNOWN:
            # Whoever wrote this has not completed the record before the line that says so.
            self._lost, self._was_left = self._lost + 1, False

    def _health(self, line: bytes) -> None:
        if _COMPLETE in line:
            self._was_left = True
        elif self.server_name is None and any(state in line for state in _SERVING):
            self.server_name = _decode_health(line).health.server_name or None


def read_left(directory: str, shim_id: str) -> LeftBehind:
    """Reads all files of a dead process' journal. The caller holds the journal's lock."""
    left = LeftBehind()
    for line in lines_of(sorted(file for file in files_in(directory, "") if file.shim == shim_id)):
        try:
            left.add(line)
        except (msgspec.MsgspecError, ValueError):
            continue  # `sub ledger verify` reports a damaged line
    return left


def end_calls(run: Run, left: LeftBehind) -> None:
    """Buffers an end for every open call. Call it through `run.record`."""
    for each in left.open:
        run.emit(
            ToolCallEnd,
            call=each.call,
            status=Status.ERROR,
            # Until the last sign of life: nobody knows more.
            latency_ms=max(0, left.last_ms - each.at_ms),
            bytes_out=0,
            error=_error(each),
            begun_by=each.begun_by or UNSET,
            preview=ResultPreview(truncated=False),
        )


def _error(each: OpenCall) -> ErrorDetail:
    if each.action is None:
        return ErrorDetail(class_=ErrorClass.POLICY_BLOCK, message=_UNDECIDED)
    if each.is_lost:
        return ErrorDetail(class_=ErrorClass.UNKNOWN, message=LOST)
    return ErrorDetail(class_=ErrorClass.POLICY_BLOCK, message=each.summary)


def all_lines(directory: str) -> Iterator[bytes]:
    """Yields every line of every journal of a run, each journal in order."""
    return lines_of(sorted(files_in(directory, "")))
