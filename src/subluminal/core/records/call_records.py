"""Writes the events of a call to the journal: start and decision, refusals, the end.

Theory of operation. The events of one tool's calls differ in a few members only, so each tool has
templates (`contracts.templates`) that are filled in with `%`. The JSON of the last ALLOW is kept,
because most calls get the same decision object again. Nothing is decided here.
"""

import time
from typing import Any

from msgspec import UNSET

from subluminal.canonical import new_hash
from subluminal.clock import rfc3339
from subluminal.contracts.call import BUILT_IN, MCP, ToolCall
from subluminal.contracts.decision import Decision, LayeredPolicyRef, PolicyRef
from subluminal.contracts.events import (
    BreakerTrip,
    CallRef,
    CallRound,
    DecisionMade,
    ErrorDetail,
    Explain,
    HintedCall,
    HintIssued,
    RoundCall,
    TaintChanged,
)
from subluminal.contracts.gate import Assessment
from subluminal.contracts.templates import ToolTemplates, encode_json
from subluminal.contracts.vocabulary import Action, Taint, Transport
from subluminal.core.records.previews import Previewer
from subluminal.core.records.refusals import masked_kernel
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.core.runs.run import Run, Turn
from subluminal.journal import JournalUnavailable

_MAX_TOOLS = 512
"""Most tools whose templates are kept; past it, all are dropped. Agents may invent any name."""
_MAX_KEPT_BYTES = 8_192
"""Size of the largest template that is kept, in bytes: a name may be as long as a message."""
# Members of CallStarted that an adapter may put into a call's context, in the order of the struct.
_CONTEXT_MEMBERS = ("args_stream_hash", "client_call_id", "traceparent", "retry_of")


class _Tool:
    """What is kept of one tool for the events of its calls."""

    __slots__ = (
        "classes",
        "decided",
        "decision",
        "decision_json",
        "end",
        "policies",
        "policy",
        "start",
        "tags_json",
        "taint",
        "transport",
    )

    def __init__(self, templates: ToolTemplates, transport: Transport) -> None:
        self.start, self.decided, self.end = templates
        self.transport = transport
        self.decision: Decision | None = None
        """the decision that `decision_json` was made from, with `policy` and `policies`"""
        self.taint: Taint | None = None
        """the level of the run that `decision_json` names"""
        self.policy: PolicyRef | None = None
        self.policies: list[LayeredPolicyRef] | None = None
        self.decision_json = b""
        self.classes: frozenset[str] | None = None
        """the risk classes that `tags_json` was made from"""
        self.tags_json = b""


class Timestamps:
    """Timestamps of events as bytes: RFC 3339 in UTC with milliseconds.

    Remembers the last one and its second: formatting a date takes 2 us, and the second rarely
    changes.
    """

    __slots__ = ("_last", "_last_ms", "_prefix", "_second_ms")

    def __init__(self) -> None:
        self._last_ms = -1
        self._last = b""
        self._second_ms = -1_000
        self._prefix = b""

    def at(self, wall_ms: int) -> bytes:
        """Returns the timestamp of a wall clock reading."""
        if wall_ms == self._last_ms:
            return self._last
        millis = wall_ms - self._second_ms
        if not 0 <= millis < 1000:
            millis = wall_ms % 1000
            self._second_ms = wall_ms - millis
            self._prefix = rfc3339(self._second_ms)[:-4].encode()
        self._last_ms = wall_ms
        self._last = b"%b%03dZ" % (self._prefix, millis)
        return self._last


class CallRecords:
    """Writes the calls of one run to its journal.

    `decided` and `ended` are flat on purpose: every call passes them, and each function, object or
    look-up is expensive after a pause, when the CPU's caches are cold.
    """

    def __init__(self, run: Run, previewer: Previewer) -> None:
        self._run = run
        self._journal = run.journal
        self._previews = previewer
        self._timestamps = Timestamps()
        self._tools: dict[tuple[str, str], _Tool] = {}
        self._put_end = run.journal.add_chained
        """takes the end of a call; the next flush writes it"""

    def decided(
        self,
        ruling: Ruling,
        wall_ms: int,
        seq: int,
        args_text: bytes | None,
        policies: list[LayeredPolicyRef],
    ) -> None:
        """Writes start and decision in one write(2), or raises JournalUnavailable."""
        call, assessment, journal = ruling.call, ruling.assessment, self._journal
        level = ruling.level
        taint = None if level is None else level.before
        tool = self._tools.get((call.server_name, call.tool_name))
        if tool is None or tool.transport is not call.transport:
            tool = self._new_tool(call)
        if (
            tool.decision is assessment.decision
            # Layers share decision objects, and a reload may change a layer that did not decide.
            and tool.policy is assessment.policy
            and tool.policies is policies
            and tool.taint is taint
            and assessment.would_be is None
            and not assessment.grants
            and assessment.kernel is None
        ):
            decision_json = tool.decision_json
        else:
            if assessment.kernel is not None:
                assessment.kernel = masked_kernel(assessment.kernel, self._previews.safe)
            decision_json = _decision_json(tool, assessment, policies, taint)
        if tool.classes is not assessment.risk_classes:
            _classify(tool, assessment.risk_classes)
        extra_json = tool.tags_json
        if call.context or call.given is not None or call.provider != MCP:
            extra_json += self._said_json(call)
        if ruling.targets is not None:
            extra_json += b',"targets":' + encode_json(self._previews.targets(ruling.targets))
        if not seq:
            extra_json += b',"after_seq":%d' % self._run.state.known_seq()
        ts = self._timestamps.at(wall_ms)
        call_id, args_hash = ruling.call_id.encode(), call.args_hash.encode()
        n, prev = journal.n, journal.prev
        preview_json, text_json = self._previews.args(args_text, args_hash)
        start = tool.start % (
            ts,
            n,
            prev,
            call_id,
            args_hash,
            call.bytes_in,
            seq,
            ruling.started_ns // 1_000_000,
            extra_json,
            preview_json,
        )
        # This is chain.link, inlined. The last member of a line, the preview text, is not chained,
        # so that it can be dropped later (provable-ledger).
        link = new_hash()
        link.update(prev)
        link.update(start)
        prev = link.hexdigest().encode()
        decision = tool.decided % (ts, n + 1, prev, call_id, args_hash, decision_json)
        link = new_hash()
        link.update(prev)
        link.update(decision)
        lines = b"".join((start[:-3], text_json, b"}}}\n", decision, b"\n"))
        head = link.hexdigest().encode()
        if assessment.forwarded and (level is None or level.change is None):
            journal.write_chained(lines, 2, head)
        else:
            journal.add_chained(lines, 2, head)
            self._add_news(ruling)
            journal.flush()

    def ended(self, ruling: Ruling, outcome: CallEnding, latency_ms: int, learnt: bytes) -> None:
        """Buffers the end of a call; the next flush writes it. `learnt`: see `Enforcer._learn`."""
        call, journal, prev = ruling.call, self._journal, self._journal.prev
        tool = self._tools.get((call.server_name, call.tool_name)) or self._new_tool(call)
        extra_json = learnt
        if (
            outcome.error_class is not None
            or outcome.result_stream_hash is not None
            or outcome.executed_args_hash is not None
        ):
            extra_json = self._end_extra(outcome) + learnt
        preview_json, text_json = self._previews.result(outcome.result)
        end = tool.end % (
            self._timestamps.at(time.time_ns() // 1_000_000),
            journal.n,
            prev,
            ruling.call_id.encode(),
            call.args_hash.encode(),
            outcome.status.encode(),
            latency_ms,
            outcome.bytes_out,
            extra_json,
            preview_json,
        )
        link = new_hash()
        link.update(prev)
        link.update(end)
        lines = b"".join((end[:-2], text_json, b"}}\n"))
        self._put_end(lines, 1, link.hexdigest().encode())

    def round_decided(
        self,
        ruling: Ruling,
        assessment: Assessment,
        number: int,
        bytes_in: int,
        policies: list[LayeredPolicyRef],
    ) -> None:
        """Writes the decision about a further round of a call, or raises JournalUnavailable."""
        call = ruling.call
        self._run.emit(
            CallRound,
            call=RoundCall(
                call_id=ruling.call_id,
                server_name=call.server_name,
                tool_name=self._previews.safe(call.tool_name),
                args_hash=call.args_hash,
                round=number,
                bytes_in=bytes_in,
            ),
            decision=_decision_made(
                assessment, policies, None if ruling.level is None else ruling.level.before
            ),
        )
        if not assessment.forwarded:
            self._refused(ruling, assessment)
        self._journal.flush()

    def _add_news(self, ruling: Ruling) -> None:
        """Buffers what comes with a decision: that of a refusal, and of a run that is lowered."""
        if not ruling.assessment.forwarded:
            self._refused(ruling, ruling.assessment)
        if ruling.level is not None and ruling.level.change is not None:
            self._run.emit(TaintChanged, taint=ruling.level.change)

    def _refused(self, ruling: Ruling, assessment: Assessment) -> None:
        call, decision = ruling.call, assessment.decision
        tool_name = self._previews.safe(call.tool_name)
        if decision.action is Action.REJECT_WITH_HINT and decision.hint is not None:
            self._run.emit(
                HintIssued,
                call=HintedCall(
                    call_id=ruling.call_id,
                    server_name=call.server_name,
                    tool_name=tool_name,
                ),
                hint=decision.hint,
                hint_id=f"hint-{ruling.call_id}",
                rule_id=decision.rule_id,
            )
        for trip in assessment.trips:
            self._run.emit(
                BreakerTrip,
                call=CallRef(
                    call_id=ruling.call_id,
                    server_name=call.server_name,
                    tool_name=tool_name,
                    args_hash=call.args_hash,
                ),
                breaker=trip,
            )

    def _new_tool(self, call: ToolCall) -> _Tool:
        if len(self._tools) >= _MAX_TOOLS:
            self._tools.clear()
        # An agent can put a secret into a tool's name (unprintable-secrets).
        shown = self._previews.safe(call.tool_name)
        made = self._run.templates.of_tool(call.server_name, shown, call.transport)
        tool = _Tool(made, call.transport)
        if len(made.start) <= _MAX_KEPT_BYTES:
            self._tools[call.server_name, call.tool_name] = tool
        return tool

    def _context_json(self, context: dict[str, str]) -> bytes:
        members = b""
        for name in _CONTEXT_MEMBERS:
            value = context.get(name)
            if value is not None:
                members += b',"%b":%b' % (name.encode(), encode_json(self._previews.safe(value)))
        return members

    def _said_json(self, call: ToolCall) -> bytes:
        """Returns what the door and the program around it say about a call."""
        members = self._context_json(call.context) if call.context else b""
        if call.provider == BUILT_IN:
            members += b',"provider":"built-in"'
        elif call.provider != MCP:
            members += b',"provider":' + encode_json(self._previews.safe(call.provider))
        if call.given is not None:
            # Only doors inside of a program have it.
            from subluminal.core.records.given import given_preview

            members += b',"given":' + encode_json(given_preview(call.given, self._previews))
        return members

    def _end_extra(self, outcome: CallEnding) -> bytes:
        extra = b""
        if outcome.error_class is not None:
            detail = ErrorDetail(
                class_=outcome.error_class,
                message=self._previews.sentence(outcome.error_message),
                code=UNSET if outcome.error_code is None else outcome.error_code,
            )
            extra = b',"error":' + encode_json(detail)
        if outcome.result_stream_hash is not None:
            extra += b',"result_stream_hash":"%b"' % outcome.result_stream_hash.encode()
        if outcome.executed_args_hash is not None:
            extra += b',"executed_args_hash":"%b"' % outcome.executed_args_hash.encode()
        return extra


class ThreadedCallRecords(CallRecords):
    """Call records of a run that several threads use: one thread writes at a time."""

    def __init__(self, run: Run, previewer: Previewer) -> None:
        super().__init__(run, previewer)
        assert isinstance(run.turn, Turn)
        self._turn, self._lock = run.turn, run.turn.lock
        self._put_end = run.journal.write_chained  # there is no loop that would flush later

    def decided(
        self,
        ruling: Ruling,
        wall_ms: int,
        seq: int,
        args_text: bytes | None,
        policies: list[LayeredPolicyRef],
    ) -> None:
        """Waits for its turn. Raises JournalUnavailable if that takes longer than the bound."""
        lock = self._lock  # `with self._turn`, inlined
        if lock._is_owned() or not lock.acquire(False):
            self._turn.__enter__()
        try:
            CallRecords.decided(self, ruling, wall_ms, seq, args_text, policies)
        finally:
            if lock._is_owned():
                lock.release()

    def round_decided(self, *decision: Any) -> None:
        """Waits for its turn. Raises JournalUnavailable if that takes longer than the bound."""
        with self._run.turn:
            super().round_decided(*decision)

    def ended(self, ruling: Ruling, outcome: CallEnding, latency_ms: int, learnt: bytes) -> None:
        """Waits for its turn, and writes the end at once."""
        lock = self._lock
        try:
            if lock._is_owned() or not lock.acquire(False):
                self._turn.__enter__()
            CallRecords.ended(self, ruling, outcome, latency_ms, learnt)
        except JournalUnavailable:
            return  # the journal has counted the loss
        finally:
            if lock._is_owned():
                lock.release()


def _decision_json(
    tool: _Tool,
    assessment: Assessment,
    policies: list[LayeredPolicyRef],
    taint: Taint | None,
) -> bytes:
    """Encodes a decision; keeps the JSON of an ALLOW for the tool's next call."""
    encoded = encode_json(_decision_made(assessment, policies, taint))
    is_all = assessment.would_be is None and not assessment.grants and assessment.kernel is None
    if is_all and assessment.decision.action is Action.ALLOW:
        tool.decision, tool.decision_json = assessment.decision, encoded
        tool.policy, tool.policies, tool.taint = assessment.policy, policies, taint
    return encoded


def _decision_made(
    assessment: Assessment, policies: list[LayeredPolicyRef], taint: Taint | None
) -> DecisionMade:
    decision = assessment.decision
    would_be = assessment.would_be
    grants = assessment.grants
    return DecisionMade(
        action=decision.action,
        rule_id=decision.rule_id,
        severity=decision.severity,
        explain=Explain(summary=decision.summary, reason_code=decision.reason_code),
        policy=assessment.policy,
        backoff_ms=UNSET if decision.backoff_ms is None else decision.backoff_ms,
        hint=UNSET if decision.hint is None else decision.hint,
        terminate=UNSET if decision.terminate is None else decision.terminate,
        would_be=UNSET if would_be is None else would_be,
        grant=grants[0] if grants else UNSET,
        grants=list(grants) if len(grants) > 1 else UNSET,
        policies=policies if len(policies) > 1 else UNSET,
        taint=UNSET if taint is None else taint,
        defer=UNSET if decision.defer is None else decision.defer,
        kernel=UNSET if assessment.kernel is None else assessment.kernel,
        constraints=UNSET if decision.constraints is None else decision.constraints,
    )


def _classify(tool: _Tool, risk_classes: frozenset[str]) -> None:
    """Encodes risk classes, and keeps the JSON: calls of one tool mostly have the same object."""
    tool.classes = risk_classes
    tool.tags_json = b',"tags":' + encode_json(sorted(risk_classes)) if risk_classes else b""
