"""The core (Pack section 7): decides a tool call, records it, and learns how it ended.

Knows no protocol, no process and no file. `begin` and `finish` never wait for anything but the
run's lock, so a hook, an in-process guard and every adapter share them (architecture section 3).
"""

import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET, Struct

from subluminal.contracts.call import ToolCall
from subluminal.contracts.counters import CountersFull, Update
from subluminal.contracts.decision import Decision, Terminate
from subluminal.contracts.events import (
    BreakerTrip,
    CallRef,
    DecisionMade,
    ErrorDetail,
    Explain,
    HintedCall,
    HintIssued,
    WouldBe,
)
from subluminal.contracts.templates import encode_json, names_json
from subluminal.contracts.vocabulary import (
    Action,
    ErrorClass,
    ReasonCode,
    Severity,
    Status,
)
from subluminal.core.previews import Preview, Previewer
from subluminal.core.run import Run
from subluminal.core.timestamps import Timestamps
from subluminal.journal import JournalUnavailable
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.state.errors import StateBusy
from subluminal.state.run_state import Total

_ALLOW = Action.ALLOW
_MAX_CACHED = 512
_TOTALS = {
    Action.ALLOW: Total.CALLS_ALLOWED,
    Action.THROTTLE: Total.CALLS_THROTTLED,
    Action.BLOCK: Total.CALLS_BLOCKED,
    Action.REJECT_WITH_HINT: Total.CALLS_BLOCKED,
    Action.TERMINATE_RUN: Total.CALLS_BLOCKED,
}


class Ruling(Struct):
    """What `begin` says about a call; the adapter gives it back to `finish`."""

    call: ToolCall
    call_id: str
    evaluation: Evaluation
    started_ns: int
    names: bytes
    finished: bool = False

    @property
    def decision(self) -> Decision:
        """What to do with the call."""
        return self.evaluation.decision

    @property
    def is_allowed(self) -> bool:
        """Whether the adapter forwards the call."""
        return self.evaluation.forwarded

    @property
    def is_watched(self) -> bool:
        """Whether a breaker wants to know how the call ends, even if it ends well."""
        return any(
            breaker.watches_latency for visit in self.evaluation.visits for breaker in visit.watches
        )


class Outcome(Struct, frozen=True):
    """How a call ended, in no protocol's words."""

    status: Status
    bytes_out: int
    result: bytes | None = b""
    """what may be previewed; None if it was too large to inspect"""
    error_class: ErrorClass | None = None
    error_message: str = ""
    error_code: int | str | None = None
    result_stream_hash: str | None = None


class Enforcer:
    """Decides and records the calls of one run. `engine` may be replaced between two calls."""

    def __init__(self, run: Run, engine: Engine, previewer: Previewer) -> None:
        self.run = run
        self.engine = engine
        self._previews = previewer
        self._journal = run.journal
        self._state = run.state
        self._timestamps = Timestamps()
        self._names: dict[tuple[str, str], bytes] = {}
        self._decisions: dict[int, tuple[Evaluation, Decision, bytes]] = {}
        self._calls = 0
        self.refusal: Decision | None = None
        """set while a policy that should be in force is not: nothing passes"""
        self.on_bug: Callable[[Exception], None] = _ignore_bug
        """told of a bug of ours while deciding; `decision_on_error` has been applied"""

    def begin(self, call: ToolCall, args_text: bytes | None) -> Ruling:
        """Decides one call; start and decision are journalled when this returns (D5)."""
        wall_ns = time.time_ns()
        mono_ns = time.monotonic_ns()
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        seq = 0
        try:
            with self._state.locked():
                seq = self._state.take_seq()
                evaluation = self._decide(asked, wall_ns // 1_000_000, mono_ns // 1_000_000)
        except (StateBusy, CountersFull) as error:
            evaluation = self._failure(asked, f"the run's counters are unavailable: {error}")
        except Exception as bug:  # noqa: BLE001 - one of the three edges: the stream must live
            self.on_bug(bug)
            evaluation = self._failure(asked, f"a bug in sub: {type(bug).__name__}")
        if not evaluation.forwarded:
            evaluation.decision = self._masked(evaluation.decision)
        wall_ms = wall_ns // 1_000_000
        return self._ruled(call, asked, evaluation, wall_ms, mono_ns, seq, args_text)

    def begin_undecidable(self, call: ToolCall, reason: ReasonCode, summary: str) -> Ruling:
        """Records a call that no policy can judge, and applies `decision_on_error` (D6)."""
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        failed = self.engine.failure(asked, reason, self._previews.safe(summary))
        return self._without_rules(call, asked, failed)

    def refuse(self, call: ToolCall, reason: ReasonCode, summary: str) -> Ruling:
        """Records a call that cannot be forwarded, whatever the policy says of it."""
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        blocked = Decision(
            action=Action.BLOCK,
            rule_id=None,
            severity=Severity.CRITICAL,
            reason_code=reason,
            summary=self._previews.safe(summary),
        )
        return self._without_rules(call, asked, self.engine.refusal(blocked))

    def _without_rules(self, call: ToolCall, asked: Call, evaluation: Evaluation) -> Ruling:
        """Counts and records what no rule decided; a run that is over, or locked, stays so."""
        wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
        seq = 0
        ended = self._state.terminated()
        if ended is not None:
            evaluation = self.engine.refusal(_terminated(ended.code, ended.message))
        elif self.refusal is not None:
            evaluation = self.engine.refusal(self.refusal)
        try:
            with self._state.locked():
                seq = self._state.take_seq()
                self._state.count(_TOTALS[evaluation.decision.action])
        except StateBusy:
            pass  # it is recorded below all the same
        return self._ruled(call, asked, evaluation, wall_ms, mono_ns, seq, None)

    def finish(self, ruling: Ruling, outcome: Outcome, at_ns: int | None = None) -> None:
        """Learns and records how a call ended. Idempotent: a late second end changes nothing.

        The end event is buffered; `flush` or the next `begin` writes it. `at_ns` is when it ended
        by the monotonic clock, if that was not just now.
        """
        if ruling.finished:
            return
        ruling.finished = True
        mono_ns = time.monotonic_ns() if at_ns is None else at_ns
        latency_ms = max(0, mono_ns - ruling.started_ns) // 1_000_000
        self._learn(ruling, outcome.status, latency_ms, mono_ns // 1_000_000)
        preview = self._previews.result(outcome.result)
        ts = self._timestamps.at(time.time_ns() // 1_000_000)
        line = self.run.templates.tool_call_end(
            ts,
            self._journal.n,
            self._journal.prev,
            call_id=ruling.call_id.encode(),
            names_json=ruling.names,
            args_hash=ruling.call.args_hash.encode(),
            status=outcome.status.encode(),
            latency_ms=latency_ms,
            bytes_out=outcome.bytes_out,
            extra_json=self._end_extra(outcome),
            truncated=preview.truncated,
            preview_json=preview.members_json,
        )
        self._journal.add_chained(line, _without(line, preview, 2))

    def flush(self) -> bool:
        """Writes buffered ends; False if the journal could not take them."""
        try:
            self._journal.flush()
        except JournalUnavailable:
            return False
        return True

    def _decide(self, call: Call, wall_ms: int, mono_ms: int) -> Evaluation:
        """Under the run's lock: one decision, its counters, the run's totals."""
        ended = self._state.terminated()
        if ended is not None:
            evaluation = self.engine.refusal(_terminated(ended.code, ended.message))
        elif self.refusal is not None:
            evaluation = self.engine.refusal(self.refusal)
        else:
            counters = self._state.counters
            evaluation = self.engine.evaluate(call, counters, wall_ms=wall_ms, mono_ms=mono_ms)
            updates = evaluation.updates
            if updates:
                counters.write(updates)
            decision = evaluation.decision
            if decision.terminate is not None:
                reason = decision.terminate
                self._state.terminate(reason.terminate_code, reason.terminate_message)
        self._state.count(_TOTALS[evaluation.decision.action])
        return evaluation

    def _ruled(
        self,
        call: ToolCall,
        asked: Call,
        evaluation: Evaluation,
        wall_ms: int,
        mono_ns: int,
        seq: int,
        args_text: bytes | None,
    ) -> Ruling:
        """Turns an evaluation into a ruling that is on record."""
        self._calls += 1
        call_id = f"{self.run.shim_id}.{self._calls}"
        ruling = Ruling(call, call_id, evaluation, mono_ns, self._names_of(call))
        preview = self._previews.args(args_text, call.args_hash)
        try:
            self._record(ruling, self._timestamps.at(wall_ms), seq, preview)
        except JournalUnavailable as error:
            ruling.evaluation = self._unrecorded(ruling, asked, str(error))
        return ruling

    def _record(self, ruling: Ruling, ts: bytes, seq: int, preview: Preview) -> None:
        call, journal = ruling.call, self._journal
        call_id, args_hash = ruling.call_id.encode(), call.args_hash.encode()
        start = self.run.templates.tool_call_start(
            ts,
            journal.n,
            journal.prev,
            call_id=call_id,
            names_json=ruling.names,
            args_hash=args_hash,
            transport=call.transport.encode(),
            bytes_in=call.bytes_in,
            seq=seq,
            extra_json=_start_extra(call, ruling.evaluation.risk_classes),
            truncated=preview.truncated,
            preview_json=preview.members_json,
        )
        journal.add_chained(start, _without(start, preview, 3))
        decision = self.run.templates.tool_call_decision(
            ts,
            journal.n,
            journal.prev,
            call_id=call_id,
            names_json=ruling.names,
            args_hash=args_hash,
            decision_json=self._decision_json(ruling.evaluation),
        )
        journal.add_chained(decision, decision)
        if not ruling.is_allowed:
            self._record_refusal(ruling)
        journal.flush()

    def _record_refusal(self, ruling: Ruling) -> None:
        call, decision = ruling.call, ruling.decision
        if decision.action is Action.REJECT_WITH_HINT and decision.hint is not None:
            self.run.emit(
                HintIssued,
                call=HintedCall(
                    call_id=ruling.call_id,
                    server_name=call.server_name,
                    tool_name=call.tool_name,
                ),
                hint=decision.hint,
                hint_id=f"hint-{ruling.call_id}",
                rule_id=decision.rule_id,
            )
        for trip in ruling.evaluation.trips:
            self.run.emit(
                BreakerTrip,
                call=CallRef(
                    call_id=ruling.call_id,
                    server_name=call.server_name,
                    tool_name=call.tool_name,
                    args_hash=call.args_hash,
                ),
                breaker=trip,
            )

    def _failure(self, call: Call, summary: str) -> Evaluation:
        return self.engine.failure(call, ReasonCode.EVALUATION_ERROR, summary)

    def _masked(self, decision: Decision) -> Decision:
        """A refusal as it may be told: its hint may repeat the call's own arguments (D12)."""
        text = encode_json(decision)
        masked = self._previews.safe(text.decode())
        if masked == text.decode():
            return decision
        try:
            return msgspec.json.decode(masked, type=Decision)
        except msgspec.MsgspecError:
            return msgspec.structs.replace(decision, summary="[REDACTED]", hint=None)

    def _unrecorded(self, ruling: Ruling, call: Call, why: str) -> Evaluation:
        """Nothing may run unrecorded, unless the policy would rather run blind (D5)."""
        if not ruling.is_allowed:
            return ruling.evaluation
        return self.engine.failure(
            call, ReasonCode.JOURNAL_UNAVAILABLE, f"the call could not be recorded: {why}"
        )

    def _learn(self, ruling: Ruling, status: Status, latency_ms: int, mono_ms: int) -> None:
        evaluation = ruling.evaluation
        if status is Status.OK and not ruling.is_watched:
            return
        try:
            with self._state.locked():
                if evaluation.forwarded and status in (Status.ERROR, Status.TIMEOUT):
                    self._state.count(Total.ERRORS)
                updates: Sequence[Update] = self.engine.outcome(
                    evaluation, status, latency_ms, self._state.counters, mono_ms=mono_ms
                )
                if updates:
                    self._state.counters.write(updates)
        except (StateBusy, CountersFull):
            # The call is over and was recorded; a window that misses one entry is all it costs.
            return

    def _names_of(self, call: ToolCall) -> bytes:
        key = (call.server_name, call.tool_name)
        found = self._names.get(key)
        if found is None:
            if len(self._names) >= _MAX_CACHED:
                self._names.clear()
            self._names[key] = found = names_json(*key)
        return found

    def _decision_json(self, evaluation: Evaluation) -> bytes:
        """Encodes a decision. The same object again, as most ALLOWs are, costs a look-up."""
        decision = evaluation.decision
        cached = self._decisions.get(id(decision))
        if cached is not None and cached[1] is decision and cached[0].policy is evaluation.policy:
            return cached[2]
        encoded = encode_json(self._decision_made(evaluation))
        if decision.action is _ALLOW and evaluation.would_be is None:
            if len(self._decisions) >= _MAX_CACHED:
                self._decisions.clear()
            self._decisions[id(decision)] = (evaluation, decision, encoded)
        return encoded

    def _decision_made(self, evaluation: Evaluation) -> DecisionMade:
        decision = evaluation.decision
        would_be: WouldBe | None = evaluation.would_be
        several = len(self.engine.policies) > 1
        return DecisionMade(
            action=decision.action,
            rule_id=decision.rule_id,
            severity=decision.severity,
            explain=Explain(summary=decision.summary, reason_code=decision.reason_code),
            policy=evaluation.policy,
            backoff_ms=UNSET if decision.backoff_ms is None else decision.backoff_ms,
            hint=UNSET if decision.hint is None else decision.hint,
            terminate=UNSET if decision.terminate is None else decision.terminate,
            would_be=UNSET if would_be is None else would_be,
            policies=self.engine.policies if several else UNSET,
        )

    def _end_extra(self, outcome: Outcome) -> bytes:
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
        return extra


def _without(line: bytes, preview: Preview, closing: int) -> bytes:
    """The line as it is chained: without the preview's text, which is its last member (D14)."""
    dropped = len(preview.text_json)
    return line[: -dropped - closing] + line[-closing:] if dropped else line


def _ignore_bug(_bug: Exception) -> None:
    """Until someone wants to know."""


def _terminated(code: str, message: str) -> Decision:
    return Decision(
        action=Action.TERMINATE_RUN,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=ReasonCode.RUN_TERMINATED,
        summary=f"this run was ended: {message}",
        terminate=Terminate(terminate_code=code, terminate_message=message),
    )


# Members of CallStarted that an adapter may put into a call's context, in the struct's order.
_CONTEXT_MEMBERS = ("args_stream_hash", "client_call_id", "traceparent")


def _start_extra(call: ToolCall, risk_classes: frozenset[str]) -> bytes:
    if not risk_classes and not call.context:
        return b""
    extra = b""
    if risk_classes:
        extra = b',"tags":' + encode_json(sorted(risk_classes))
    for name in _CONTEXT_MEMBERS:
        value = call.context.get(name)
        if value is not None:
            extra += b',"%b":%b' % (name.encode(), encode_json(value))
    return extra
