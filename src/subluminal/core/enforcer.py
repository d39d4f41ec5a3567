"""Decides the tool calls of one run, records them, and learns how they ended (Pack section 7).

The enforcer knows no protocol and starts no process. It holds a run (shared state, journal), an
engine (the policies in force) and the gates around it, and asks them in order under the run's lock:

    begin    stops -> plugins, policy (the engine) -> grants. The decision, its counters and the
             run's totals are one step. Start and decision are journalled when it returns.
    finish   tells the breakers how the call ended; buffers the end for the journal

Both wait for the run's lock and for nothing else, so every door can share them. Several threads
may call them if the run was opened for threads (`core.runs.opening`).
"""

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from subluminal.contracts.call import ToolCall
from subluminal.contracts.counters import CountersFull, Update
from subluminal.contracts.decision import Decision, Hint, Terminate
from subluminal.contracts.templates import encode_json
from subluminal.contracts.vocabulary import Action, ReasonCode, Severity, Status
from subluminal.core.gates import NO_GATES, Gates, blocked, refusal_of
from subluminal.core.records.call_records import CallRecords, ThreadedCallRecords
from subluminal.core.records.previews import Previewer
from subluminal.core.ruling import Outcome, Ruling
from subluminal.core.runs.run import Run
from subluminal.journal import JournalUnavailable
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.run_state import Total

if TYPE_CHECKING:
    from subluminal.core.controls.approvals import Approvals

__all__ = ["Enforcer", "Outcome", "Ruling"]

_TOTALS = {
    Action.ALLOW: Total.CALLS_ALLOWED,
    Action.THROTTLE: Total.CALLS_THROTTLED,
    Action.BLOCK: Total.CALLS_BLOCKED,
    Action.REJECT_WITH_HINT: Total.CALLS_BLOCKED,
    Action.TERMINATE_RUN: Total.CALLS_BLOCKED,
}
_OK = Status.OK
_NO_HINT = Hint(hint_text="[REDACTED]", retry_advice="do not retry this call unchanged")
"""Replaces a hint that cannot be shown: a REJECT_WITH_HINT always has a hint (Pack 1.6)."""


def _ignore_bug(_bug: Exception) -> None:
    """The default `on_bug`."""


class Enforcer:
    """Decides and records the calls of one run. `engine` may be replaced between two calls."""

    def __init__(
        self,
        run: Run,
        engine: Engine,
        previewer: Previewer,
        gates: Gates = NO_GATES,
        *,
        refusal: Decision | None = None,
        on_bug: Callable[[Exception], None] = _ignore_bug,
    ) -> None:
        self.run = run
        self.engine = engine
        self.gates = gates
        self.refusal = refusal
        """the refusal of every call while a policy that should be in force is not"""
        self.open_calls = 0
        """number of calls that began and have not ended; the host counts them"""
        self._on_bug = on_bug
        """called with a bug of ours in `begin`, after `decision_on_error` was applied"""
        self._previews = previewer
        self._state = run.state
        records = ThreadedCallRecords if run.is_threaded else CallRecords
        self._records = records(run, previewer)
        self._stops = gates.stops
        self._approvals: Approvals | None = None
        self._shim_id = run.shim_id
        self._numbers = count(1)

    def begin(self, call: ToolCall, args_text: bytes | None) -> Ruling:
        """Decides one call; start and decision are journalled when this returns (journal-first)."""
        # Flat on purpose: every call passes here, and each extra frame costs time.
        number = next(self._numbers)
        wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        state, stops, engine = self._state, self._stops, self.engine
        seq, evaluation = 0, None
        try:
            with state.locked():
                # The decision, its counters and the run's totals are one step for all shims of
                # the run. The clock is read inside that step: a caller that waited for the lock
                # with an older time would refill a bucket for the same seconds twice.
                wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
                mono_ms = mono_ns // 1_000_000
                seq = state.take_seq()
                if stops.words[0] != stops.calm or self.refusal is not None or state.terminated():
                    evaluation = self._over(asked)
                if evaluation is None:
                    counters = state.counters
                    evaluation = engine.evaluate(asked, counters, wall_ms=wall_ms, mono_ms=mono_ms)
                    if not evaluation.forwarded and evaluation.refused_by:
                        call_id = f"{self._shim_id}.{number}"
                        evaluation = self._settled(
                            evaluation, asked, call_id, wall_ms, mono_ms, args_text
                        )
                    updates = evaluation.updates
                    if updates:
                        counters.write(updates)
                    ending = evaluation.decision.terminate
                    if ending is not None:
                        state.terminate(ending.terminate_code, ending.terminate_message)
                state.count(_TOTALS[evaluation.decision.action])
        except Exception as error:  # noqa: BLE001 - a bug here must not end the client's stream
            evaluation = self._undecided(asked, error)
        if not evaluation.forwarded:
            evaluation.decision = self._masked(evaluation.decision)
        ruling = self._ruled(call, number, evaluation, wall_ms, mono_ns, seq, args_text)
        if self._approvals is not None and self._approvals.news:
            self._approvals.tell(ruling.call_id)
        return ruling

    def begin_undecidable(self, call: ToolCall, reason: ReasonCode, summary: str) -> Ruling:
        """Records a call that no policy can judge, and applies `decision_on_error`."""
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        failed = self.engine.failure(asked, reason, self._previews.safe(summary))
        return self._without_rules(call, asked, failed)

    def refuse(self, call: ToolCall, reason: ReasonCode, summary: str) -> Ruling:
        """Records and refuses a call that cannot be forwarded, whatever the policy says."""
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        refusal = self.engine.refusal(blocked(reason, self._previews.safe(summary)))
        return self._without_rules(call, asked, refusal)

    def finish(self, ruling: Ruling, outcome: Outcome, at_ns: int | None = None) -> None:
        """Records how a call ended, and tells the breakers.

        A second end of the same call changes nothing. The end event is buffered; `flush` or the
        next `begin` writes it. `at_ns` is the monotonic time at which the call ended; None for now.
        """
        if ruling.finished:
            return
        ruling.finished = True
        mono_ns = time.monotonic_ns() if at_ns is None else at_ns
        latency_ms = max(0, mono_ns - ruling.started_ns) // 1_000_000
        learnt = b""
        if outcome.status is not _OK or ruling.assessment.is_watched:
            learnt = self._learn(ruling, outcome.status, latency_ms, mono_ns // 1_000_000)
        self._records.ended(ruling, outcome, latency_ms, learnt)

    def flush(self) -> bool:
        """Writes buffered ends; False if the journal could not take them."""
        return self.run.flush()

    def is_over(self, call: ToolCall) -> bool:
        """Returns True if a begun call must not go on: its run ended, or a person stopped it."""
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        return self._over(asked) is not None

    def shown_name(self, call: ToolCall) -> str:
        """Returns a call's tool name with secrets masked (unprintable-secrets)."""
        return self._previews.safe(call.tool_name)

    # Off the path of ordinary calls

    def _undecided(self, call: Call, error: Exception) -> Evaluation:
        """Applies `decision_on_error` to a call that could not be decided and counted."""
        if not isinstance(error, (StateBusy, StateUnusable, CountersFull)):
            self._on_bug(error)
            evaluation = self._failure(call, f"a bug in sub: {type(error).__name__}")
            self._count(evaluation)
            return evaluation
        evaluation = self._failure(call, f"the run's counters are unavailable: {error}")
        if isinstance(error, CountersFull):
            self._count(evaluation)
        else:  # counting now would wait for the same lock again
            self._state.owe(_TOTALS[evaluation.decision.action])
        return evaluation

    def _count(self, evaluation: Evaluation) -> None:
        """Adds a decision to the run's totals; if the state is out of reach, the next call does."""
        total = _TOTALS[evaluation.decision.action]
        try:
            with self._state.locked():
                self._state.count(total)
        except (StateBusy, StateUnusable):
            self._state.owe(total)

    def _without_rules(self, call: ToolCall, asked: Call, evaluation: Evaluation) -> Ruling:
        """Counts and records a decision that no rule made. A stop or an ended run comes first."""
        wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
        seq = 0
        evaluation = self._over(asked) or evaluation
        try:
            with self._state.locked():
                seq = self._state.take_seq()
                self._state.count(_TOTALS[evaluation.decision.action])
        except (StateBusy, StateUnusable):
            # The call is still recorded below.
            self._state.owe(_TOTALS[evaluation.decision.action])
        return self._ruled(call, next(self._numbers), evaluation, wall_ms, mono_ns, seq, None)

    def _settled(
        self,
        refused: Evaluation,
        call: Call,
        call_id: str,
        wall_ms: int,
        mono_ms: int,
        args_text: bytes | None,
    ) -> Evaluation:
        """Asks the grants about a call that an access rule refuses (no-call-waits)."""
        if self._approvals is None:
            if self.gates.open_approvals is None:
                return refused
            self._approvals = self.gates.open_approvals()
        return self._approvals.settle(
            self.engine,
            refused,
            call,
            call_id=call_id,
            args_text=args_text,
            wall_ms=wall_ms,
            mono_ms=mono_ms,
        )

    def _ruled(
        self,
        call: ToolCall,
        number: int,
        evaluation: Evaluation,
        wall_ms: int,
        mono_ns: int,
        seq: int,
        args_text: bytes | None,
    ) -> Ruling:
        """Turns an evaluation into a ruling, and journals it."""
        ruling = Ruling(call, f"{self._shim_id}.{number}", evaluation, mono_ns, self)
        try:
            self._records.decided(ruling, wall_ms, seq, args_text, self.engine.policies)
        except JournalUnavailable as error:
            ruling.assessment = self._unrecorded(evaluation, call, str(error))
        return ruling

    def _over(self, call: Call) -> Evaluation | None:
        """Returns the refusal of a call that is stopped, or None. Needs no lock.

        A call is stopped by the kill switch, by the end of its run, or by a missing policy. No
        rule is asked about it.
        """
        stop = self._stops.find(call.server_name, call.tool_name)
        if stop is not None:
            return self.engine.refusal(refusal_of(stop))
        ended = self._state.terminated()
        if ended is not None:
            return self.engine.refusal(_terminated(ended.code, ended.message))
        return None if self.refusal is None else self.engine.refusal(self.refusal)

    def _failure(self, call: Call, summary: str) -> Evaluation:
        over = self._over(call)
        if over is not None:
            return over
        return self.engine.failure(call, ReasonCode.EVALUATION_ERROR, summary)

    def _masked(self, decision: Decision) -> Decision:
        """Masks secrets in a refusal: its hint may repeat the call's arguments."""
        text = encode_json(decision)
        masked = self._previews.safe(text.decode())
        if masked == text.decode():
            return decision
        try:
            return msgspec.json.decode(masked, type=Decision)
        except msgspec.MsgspecError:  # the secret is one of our own words
            hint = None if decision.hint is None else _NO_HINT
            return msgspec.structs.replace(decision, summary="[REDACTED]", hint=hint)

    def _unrecorded(self, evaluation: Evaluation, call: ToolCall, why: str) -> Evaluation:
        """Applies `decision_on_error` to a call that was allowed but could not be journalled."""
        if not evaluation.forwarded:
            return evaluation
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        return self.engine.failure(
            asked, ReasonCode.JOURNAL_UNAVAILABLE, f"the call could not be recorded: {why}"
        )

    def _learn(self, ruling: Ruling, status: Status, latency_ms: int, mono_ms: int) -> bytes:
        """Tells the breakers how a call ended.

        Returns the members of the end event that say when they learnt it; replay needs them.
        """
        state = self._state
        try:
            with state.locked():
                if status is not Status.OK:
                    state.count(Total.ERRORS)
                updates: Sequence[Update] = ruling.assessment.learn(
                    status, latency_ms, state.counters, mono_ms
                )
                if updates:
                    state.counters.write(updates)
                return b',"after_seq":%d,"mono_ms":%d' % (state.last_seq(), mono_ms)
        except CountersFull:
            # The call is over and on record; only one entry of a window is lost.
            return b""
        except (StateBusy, StateUnusable):
            if status is not Status.OK:
                state.owe(Total.ERRORS)
            return b""


def _terminated(code: str, message: str) -> Decision:
    return Decision(
        action=Action.TERMINATE_RUN,
        rule_id=None,
        severity=Severity.CRITICAL,
        reason_code=ReasonCode.RUN_TERMINATED,
        summary=f"this run was ended: {message}",
        terminate=Terminate(terminate_code=code, terminate_message=message),
    )
