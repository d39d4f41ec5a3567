"""The core (Pack section 7): decides a tool call, records it, and learns how it ended.

Knows no protocol, no process and no file. `begin` and `finish` never wait for anything but the
run's lock, so a hook, an in-process guard and every adapter share them (architecture section 3).
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from subluminal.contracts.call import ToolCall
from subluminal.contracts.counters import CountersFull, Update
from subluminal.contracts.decision import Decision, Hint, Terminate
from subluminal.contracts.templates import encode_json
from subluminal.contracts.vocabulary import Action, ReasonCode, Severity, Status
from subluminal.core.gates import NO_CONTROLS, Controls, refusal_of
from subluminal.core.records.call_records import Records
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
"""Told where the hint cannot be: a REJECT_WITH_HINT always has one (Pack 1.6)."""


class Enforcer:
    """Decides and records the calls of one run. `engine` may be replaced between two calls."""

    def __init__(
        self, run: Run, engine: Engine, previewer: Previewer, controls: Controls = NO_CONTROLS
    ) -> None:
        self.run = run
        self.engine = engine
        self._previews = previewer
        self._journal = run.journal
        self._state = run.state
        self._records = Records(run, previewer)
        self.controls = controls
        self._stops = controls.stops
        self._approvals: Approvals | None = None
        self._shim_id = run.shim_id
        self._calls = 0
        self.refusal: Decision | None = None
        """set while a policy that should be in force is not: nothing passes"""
        self.on_bug: Callable[[Exception], None] = _ignore_bug
        """told of a bug of ours while deciding; `decision_on_error` has been applied"""

    def begin(self, call: ToolCall, args_text: bytes | None) -> Ruling:
        """Decides one call; start and decision are journalled when this returns (journal-first)."""
        # What every call passes stands here in a row; each frame more costs it (issue 4, Speed).
        wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        state, stops, engine = self._state, self._stops, self.engine
        seq, evaluation = 0, None
        try:
            with state.locked():
                # One step for all shims of the run: a decision, its counters, the run's totals.
                # Its time too: a bucket that whoever waited for the lock decides by an older clock
                # would be refilled for the same seconds twice.
                wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
                mono_ms = mono_ns // 1_000_000
                seq = state.take_seq()
                if stops.words[0] != stops.calm or self.refusal is not None or state.terminated():
                    evaluation = self._over(asked)
                if evaluation is None:
                    counters = state.counters
                    evaluation = engine.evaluate(asked, counters, wall_ms=wall_ms, mono_ms=mono_ms)
                    if not evaluation.forwarded and evaluation.refused_by:
                        evaluation = self._settled(evaluation, asked, wall_ms, mono_ms, args_text)
                    updates = evaluation.updates
                    if updates:
                        counters.write(updates)
                    ending = evaluation.decision.terminate
                    if ending is not None:
                        state.terminate(ending.terminate_code, ending.terminate_message)
                state.count(_TOTALS[evaluation.decision.action])
        except Exception as error:  # noqa: BLE001 - one of the three edges: the stream must live
            evaluation = self._undecided(asked, error)
        if not evaluation.forwarded:
            evaluation.decision = self._masked(evaluation.decision)
        ruling = self._ruled(call, asked, evaluation, wall_ms, mono_ns, seq, args_text)
        if self._approvals is not None and self._approvals.news:
            self._approvals.tell()
        return ruling

    def begin_undecidable(self, call: ToolCall, reason: ReasonCode, summary: str) -> Ruling:
        """Records a call that no policy can judge, and applies `decision_on_error` (byte-
        transparent).
        """
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

    def _undecided(self, call: Call, error: Exception) -> Evaluation:
        """What becomes of a call that could not be decided, and counted."""
        if not isinstance(error, (StateBusy, StateUnusable, CountersFull)):
            self.on_bug(error)
            evaluation = self._failure(call, f"a bug in sub: {type(error).__name__}")
            self._count(evaluation)
            return evaluation
        evaluation = self._failure(call, f"the run's counters are unavailable: {error}")
        if isinstance(error, CountersFull):
            self._count(evaluation)
        else:  # it would wait for the same lock again
            self._state.owe(_TOTALS[evaluation.decision.action])
        return evaluation

    def _count(self, evaluation: Evaluation) -> None:
        """Adds to the totals what failed before it was counted, as soon as they can be reached."""
        total = _TOTALS[evaluation.decision.action]
        try:
            with self._state.locked():
                self._state.count(total)
        except (StateBusy, StateUnusable):
            self._state.owe(total)

    def _without_rules(self, call: ToolCall, asked: Call, evaluation: Evaluation) -> Ruling:
        """Counts and records what no rule decided; a run that is over, or locked, stays so."""
        wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
        seq = 0
        evaluation = self._over(asked) or evaluation
        try:
            with self._state.locked():
                seq = self._state.take_seq()
                self._state.count(_TOTALS[evaluation.decision.action])
        except (StateBusy, StateUnusable):
            # It is recorded below all the same.
            self._state.owe(_TOTALS[evaluation.decision.action])
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
        learnt = b""
        if outcome.status is not _OK or ruling.is_watched:
            learnt = self._learn(ruling, outcome.status, latency_ms, mono_ns // 1_000_000)
        self._records.ended(ruling, outcome, latency_ms, learnt)

    def flush(self) -> bool:
        """Writes buffered ends; False if the journal could not take them."""
        try:
            self._journal.flush()
        except JournalUnavailable:
            return False
        return True

    def _settled(
        self,
        refused: Evaluation,
        call: Call,
        wall_ms: int,
        mono_ms: int,
        args_text: bytes | None,
    ) -> Evaluation:
        """What a person's answer makes of a call that an access rule refuses (no-call-waits)."""
        if self._approvals is None:
            if self.controls.open_approvals is None:
                return refused
            self._approvals = self.controls.open_approvals()
        call_id = f"{self._shim_id}.{self._calls + 1}"
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
        asked: Call,
        evaluation: Evaluation,
        wall_ms: int,
        mono_ns: int,
        seq: int,
        args_text: bytes | None,
    ) -> Ruling:
        """Turns an evaluation into a ruling that is on record."""
        self._calls += 1
        call_id = f"{self._shim_id}.{self._calls}"
        ruling = Ruling(call, call_id, evaluation, mono_ns)
        try:
            self._records.decided(ruling, wall_ms, seq, args_text, self.engine.policies)
        except JournalUnavailable as error:
            ruling.evaluation = self._unrecorded(ruling, asked, str(error))
        return ruling

    def _over(self, call: Call) -> Evaluation | None:
        """The refusal of a call that no policy is asked about, if it is one. Needs no lock."""
        stop = self._stops.find(call.server_name, call.tool_name)
        if stop is not None:
            return self.engine.refusal(refusal_of(stop))
        ended = self._state.terminated()
        if ended is not None:
            return self.engine.refusal(_terminated(ended.code, ended.message))
        return None if self.refusal is None else self.engine.refusal(self.refusal)

    def is_over(self, call: ToolCall) -> bool:
        """Whether a call that began may not go on: the run was ended, or someone stopped it."""
        asked = Call(call.server_name, call.tool_name, call.args, call.args_hash)
        return self._over(asked) is not None

    def shown_name(self, call: ToolCall) -> str:
        """A call's tool as it may be told: an agent can call anything a tool (unprintable-secrets).
        """
        return self._previews.safe(call.tool_name)

    def _failure(self, call: Call, summary: str) -> Evaluation:
        over = self._over(call)
        if over is not None:
            return over
        return self.engine.failure(call, ReasonCode.EVALUATION_ERROR, summary)

    def _masked(self, decision: Decision) -> Decision:
        """A refusal as it may be told: its hint may repeat the call's own arguments (unprintable-
        secrets).
        """
        text = encode_json(decision)
        masked = self._previews.safe(text.decode())
        if masked == text.decode():
            return decision
        try:
            return msgspec.json.decode(masked, type=Decision)
        except msgspec.MsgspecError:  # a secret that is one of our own words
            hint = None if decision.hint is None else _NO_HINT
            return msgspec.structs.replace(decision, summary="[REDACTED]", hint=hint)

    def _unrecorded(self, ruling: Ruling, call: Call, why: str) -> Evaluation:
        """Nothing may run unrecorded, unless the policy would rather run blind (journal-first)."""
        if not ruling.is_allowed:
            return ruling.evaluation
        return self.engine.failure(
            call, ReasonCode.JOURNAL_UNAVAILABLE, f"the call could not be recorded: {why}"
        )

    def _learn(self, ruling: Ruling, status: Status, latency_ms: int, mono_ms: int) -> bytes:
        """Tells the breakers; returns members that say when they learnt of it, for replay."""
        evaluation = ruling.evaluation
        try:
            with self._state.locked():
                if status is not Status.OK:
                    self._state.count(Total.ERRORS)
                updates: Sequence[Update] = self.engine.outcome(
                    evaluation, status, latency_ms, self._state.counters, mono_ms=mono_ms
                )
                if updates:
                    self._state.counters.write(updates)
                return b',"after_seq":%d,"mono_ms":%d' % (self._state.last_seq(), mono_ms)
        except CountersFull:
            # The call is over and was recorded; a window that misses one entry is all it costs.
            return b""
        except (StateBusy, StateUnusable):
            if status is not Status.OK:
                self._state.owe(Total.ERRORS)
            return b""


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
