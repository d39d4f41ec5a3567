"""Decides the tool calls of one run, records them, and learns how they ended (Pack section 7).

The enforcer knows no protocol and starts no process. It holds a run (shared state, journal), an
engine (the policies in force) and the gates around it, and asks them in order under the run's lock:

    begin    stops -> plugins, policy (the engine) -> grants. The decision, its counters and the
             run's totals are one step. Start and decision are journalled when it returns.
    finish   tells the breakers how the call ended; buffers the end for the journal

Both wait for the run's lock and for nothing else, so every door can share them. Several threads
may call them if the run was opened for threads (`core.runs.opening`).
"""

import os
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from subluminal.config.settings import Settings
from subluminal.contracts.call import Given, ToolCall
from subluminal.contracts.counters import Counters, CountersFull, Update
from subluminal.contracts.decision import Decision
from subluminal.contracts.gate import Settled
from subluminal.contracts.targets import Targets
from subluminal.contracts.vocabulary import Action, Mode, ReasonCode, Status
from subluminal.core.contents.source import ContentSource
from subluminal.core.gates import NO_GATES, Gates, refusal_of, terminated
from subluminal.core.levels import CallLevel, Levels
from subluminal.core.records.call_records import CallRecords, ThreadedCallRecords
from subluminal.core.records.previews import Previewer
from subluminal.core.records.refusals import masked_refusal
from subluminal.core.ruling import CallEnding, Ruling, asked_of
from subluminal.core.runs.run import Run
from subluminal.core.targets.source import TargetSource
from subluminal.journal import JournalUnavailable
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.layer_answers import combine
from subluminal.policy.refusing import blocked
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.run_state import Total

if TYPE_CHECKING:
    from subluminal.contracts.agents import Claims
    from subluminal.core.controls.approvals import Approvals

__all__ = ["CallEnding", "Enforcer", "Ruling"]

TOTALS = {
    Action.ALLOW: Total.CALLS_ALLOWED,
    Action.THROTTLE: Total.CALLS_THROTTLED,
    Action.BLOCK: Total.CALLS_BLOCKED,
    Action.REJECT_WITH_HINT: Total.CALLS_BLOCKED,
    Action.TERMINATE_RUN: Total.CALLS_BLOCKED,
}
_OK = Status.OK
_ALLOW, _ALLOWED = Action.ALLOW, Total.CALLS_ALLOWED


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
        targets: TargetSource | None = None,
        on_bug: Callable[[Exception], None] = _ignore_bug,
    ) -> None:
        self.run = run
        self.engine = engine
        self.gates = gates
        self.refusal = refusal
        """the refusal of every call while a policy that should be in force is not"""
        self.claims: Claims | None = None
        """what the agent says by its name alone, if a rule asks about agents; the host adds it"""
        self.open_calls = 0
        """number of calls that began and have not ended; the host counts them"""
        self._on_bug = on_bug
        """called with a bug of ours in `begin`, after `decision_on_error` was applied"""
        self._previews = previewer
        self._targets = targets or TargetSource(Settings())
        self._contents = ContentSource(previewer)
        self._state = run.state
        records = ThreadedCallRecords if run.is_threaded else CallRecords
        self.records = records(run, previewer)
        self.levels = Levels(run, previewer.safe)
        self._stops = gates.stops
        self._approvals: Approvals | None = None
        self._shim_id = run.shim_id
        self._numbers = count(1)

    def begin(self, call: ToolCall, args_text: bytes | None) -> Ruling:
        """Decides one call; start and decision are journalled when this returns (journal-first)."""
        # Flat on purpose: every call passes here, and each extra frame costs time.
        number = next(self._numbers)
        asked = Call(
            call.server_name,
            call.tool_name,
            call.args,
            call.args_hash,
            provider=call.provider,
            given=call.given,
        )
        state, stops, engine = self._state, self._stops, self.engine
        seq = wall_ms = mono_ns = 0
        evaluation = level = None
        try:
            engine.prepare(asked)
            if engine.asks_ahead or call.given is not None:
                asked = self.with_facts(asked, call, args_text)
            with state.locked():
                # The decision, its counters and the run's totals are one step for all shims of
                # the run. The clock is read inside that step: a caller that waited for the lock
                # with an older time would refill a bucket for the same seconds twice.
                wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
                mono_ms = mono_ns // 1_000_000
                seq = state.take_seq()
                stops.make_safe()
                if stops.words[0] != stops.calm or self.refusal is not None or state.terminated():
                    evaluation = self.over(asked)
                if evaluation is None:
                    counters = state.counters
                    before = self.levels.before() if engine.asks_taint else None
                    evaluation = engine.evaluate(asked, counters, wall_ms=wall_ms, mono_ms=mono_ms)
                    is_refused = not evaluation.forwarded and self.may_be_granted(evaluation)
                    if is_refused or call.added is not None:
                        call_id = f"{self._shim_id}.{number}"
                        evaluation = self.settled(
                            evaluation,
                            asked,
                            call_id,
                            wall_ms,
                            mono_ms,
                            args_text,
                            None,
                            call.added,
                        )
                    updates = evaluation.updates
                    level = before and self.levels.of_call(
                        engine, call, evaluation, updates, before, seq
                    )
                    if updates:
                        counters.write(updates)
                    ending = evaluation.decision.terminate
                    if ending is not None:
                        state.terminate(ending.terminate_code, ending.terminate_message)
                action = evaluation.decision.action
                # In Python 3.11 the hash of an enum member is a function in Python.
                state.count(_ALLOWED if action is _ALLOW else TOTALS[action])
        except Exception as error:  # noqa: BLE001 - a bug here must not end the client's stream
            wall_ms = wall_ms or time.time_ns() // 1_000_000  # without the lock, nobody read it
            mono_ns = mono_ns or time.monotonic_ns()
            evaluation, level = self._undecided(call, asked, error, seq)
        if not evaluation.forwarded or evaluation.decision.constraints is not None:
            evaluation.decision = self.masked(evaluation.decision, call.args)
        ruling = self.ruled(
            call, number, evaluation, wall_ms, mono_ns, seq, args_text, asked.targets, level
        )
        if self._approvals is not None:
            self.tell_approvals(ruling.call_id)
        return ruling

    def begin_undecidable(self, call: ToolCall, reason: ReasonCode, summary: str) -> Ruling:
        """Records a call that no policy can judge, and applies `decision_on_error`."""
        asked = asked_of(call)
        failed = self.engine.failure(asked, reason, self._previews.safe(summary))
        # Nobody can be sure which tool an ambiguous message names.
        knows_tool = reason is not ReasonCode.AMBIGUOUS_MESSAGE
        return self._without_rules(call, asked, failed, knows_tool=knows_tool)

    def refuse(
        self, call: ToolCall, reason: str, summary: str, by: Decision | None = None
    ) -> Ruling:
        """Records and refuses a call that cannot be forwarded, whatever the policy says.

        `by` is the refusal that led to this one; its rule is named.
        """
        asked = asked_of(call)
        refusal = blocked(reason, self._previews.safe(summary))
        if by is not None:
            refusal = replace(refusal, rule_id=by.rule_id, severity=by.severity)
        return self._without_rules(call, asked, self.engine.refusal(refusal))

    def finish(self, ruling: Ruling, outcome: CallEnding, at_ns: int | None = None) -> None:
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
            if ruling.handed is not None and ruling.handed.begun_by:
                learnt += b',"begun_by":"%b"' % ruling.handed.begun_by.encode()
        self.records.ended(ruling, outcome, latency_ms, learnt)

    def flush(self) -> bool:
        """Writes buffered ends; False if the journal could not take them."""
        return self.run.flush()

    def shown_name(self, call: ToolCall) -> str:
        """Returns a call's tool name with secrets masked (unprintable-secrets)."""
        return self._previews.safe(call.tool_name)

    # Off the path of ordinary calls

    def _undecided(
        self, call: ToolCall, asked: Call, error: Exception, seq: int
    ) -> tuple[Evaluation, CallLevel | None]:
        """Applies `decision_on_error` to a call that could not be decided and counted."""
        is_busy = isinstance(error, StateBusy)
        failed = self.failed(asked, error)
        if call.added is not None:
            failed = self.with_added(failed, call.added)
        evaluation, level = self.unjudged(call, failed, seq, is_busy=is_busy)
        self.count_failed(evaluation, error)
        return evaluation, level

    def failed(self, call: Call, error: Exception) -> Evaluation:
        """Returns `decision_on_error` about a call that could not be decided."""
        if isinstance(error, (StateBusy, StateUnusable, CountersFull)):
            return self._failure(call, f"the run's counters are unavailable: {error}")
        self._on_bug(error)
        return self._failure(call, f"a bug in sub: {type(error).__name__}")

    def count_as_refused(self, action: Action) -> None:
        """Counts a call as refused that was counted as allowed."""
        was, total = Total.CALLS_ALLOWED, TOTALS[action]
        try:
            with self._state.locked():
                self._state.recount(was, total)
        except (StateBusy, StateUnusable):
            self._state.owe(was, -1)
            self._state.owe(total)

    def tell_approvals(self, call_id: str) -> None:
        """Journals what the grants have to say about a call that was just decided."""
        if self._approvals is not None and self._approvals.news:
            self._approvals.tell(call_id)

    def count_failed(self, evaluation: Evaluation, error: Exception) -> None:
        """Adds a decision after an error to the run's totals.

        If the state is out of reach, the next call does.
        """
        total = TOTALS[evaluation.decision.action]
        try:
            if isinstance(error, (StateBusy, StateUnusable)):
                raise error  # counting now would wait for the same lock again
            with self._state.locked():
                self._state.count(total)
        except (StateBusy, StateUnusable):
            self._state.owe(total)

    def with_claims(self, call: ToolCall) -> ToolCall:
        """Returns a call with what is claimed about its agent: by the call, or by a mere name."""
        if self.claims is None:
            return call
        from subluminal.core.acting.acting import claims_with

        given = call.given or Given()
        return replace(call, given=replace(given, claims=claims_with(self.claims, given.claims)))

    def with_facts(self, asked: Call, call: ToolCall, args_text: bytes | None) -> Call:
        """Returns a call with what takes too long under the run's lock.

        That is what it touches, what its arguments contain, and what packs say.
        """
        asked = self.with_reading(asked, call, args_text)
        if self.engine.asks_kernel or call.given is not None:
            rank = self._state.taint.rank() if self.engine.asks_taint else 0
            asked = self.with_packs(asked, call, rank)
        return asked

    def with_reading(self, asked: Call, call: ToolCall, args_text: bytes | None = None) -> Call:
        """Returns a call with its targets and its contents, if a rule for its tool asks."""
        # Rules about other agents may ask too, if the call claims to come from one of them.
        is_claimed = call.given is not None
        if (self.engine.asks_targets or is_claimed) and self.engine.needs_targets(asked):
            asked = replace(asked, targets=self._targets.read(call))
        if self.engine.asks_contents or is_claimed:
            asked = self.with_contents(asked, call, args_text)
        return asked

    def with_contents(self, asked: Call, call: ToolCall, args_text: bytes | None) -> Call:
        """Returns a call with what its arguments contain, if a rule for its tool asks."""
        return self._contents.read(asked, call, self.engine, args_text)

    def with_packs(self, asked: Call, call: ToolCall, rank: int) -> Call:
        """Returns a call with what packs say about it in a run of this level."""
        asked = replace(asked, judgement=call.judgement)
        if not self.engine.needs_judge(asked):
            return asked
        from subluminal.core.intents.judging import with_judge  # loads the kernel
        from subluminal.core.rounds import NoCounters

        # Nobody asks a pack about a call that is stopped.
        ahead = self.over(asked) is None
        return with_judge(asked, self.engine, self.run.run_id, NoCounters(rank), ahead=ahead)

    def with_added(self, evaluation: Evaluation, added: Settled) -> Evaluation:
        """Returns the stricter of the policies' decision and a refusal by plugins."""
        return combine([evaluation, Evaluation(*added, False, ())])

    def next_number(self) -> int:
        """Returns the number of the next call of this process, from which its id is made."""
        return next(self._numbers)

    def call_id(self, number: int) -> str:
        """Returns the id of a call with this number."""
        return f"{self._shim_id}.{number}"

    def unjudged(
        self,
        call: ToolCall,
        evaluation: Evaluation,
        seq: int,
        *,
        knows_tool: bool = True,
        is_busy: bool = False,
    ) -> tuple[Evaluation, CallLevel | None]:
        """Lowers the run if a call is forwarded that no rule could judge (`core.levels`).

        A call that may bring text of strangers is refused if the run cannot be lowered for it.
        """
        if not evaluation.forwarded or not self.engine.asks_taint:
            return evaluation, None
        try:
            return evaluation, self.levels.unjudged(
                self.engine, call, seq, knows_tool=knows_tool, is_busy=is_busy
            )
        except StateUnusable as error:
            if self.engine.mode is Mode.OBSERVE:
                return evaluation, None
            refusal = blocked(ReasonCode.EVALUATION_ERROR, _not_lowered(error))
            return self.engine.refusal(refusal), None

    def read_from(self, server_name: str, method: str) -> str:
        """Lowers the run before a resource or a prompt of a server is asked for.

        Returns why it must not be asked for, in one sentence; empty if it may.
        """
        if self.engine.asks_taint:
            try:
                self.levels.read_from(self.engine, server_name, method)
            except StateUnusable as error:
                return "" if self.engine.mode is Mode.OBSERVE else _not_lowered(error)
        return ""

    def _without_rules(
        self, call: ToolCall, asked: Call, evaluation: Evaluation, *, knows_tool: bool = True
    ) -> Ruling:
        """Counts and records a decision that no rule made. A stop or an ended run comes first."""
        wall_ms, mono_ns = time.time_ns() // 1_000_000, time.monotonic_ns()
        seq, is_busy = 0, False
        evaluation = self.over(asked) or evaluation
        try:
            with self._state.locked():
                seq = self._state.take_seq()
                self._state.count(TOTALS[evaluation.decision.action])
        except (StateBusy, StateUnusable):
            # The call is still recorded below.
            is_busy = True
            self._state.owe(TOTALS[evaluation.decision.action])
        judged = evaluation
        evaluation, level = self.unjudged(call, judged, seq, knows_tool=knows_tool, is_busy=is_busy)
        if evaluation is not judged:
            self.count_as_refused(evaluation.decision.action)
        number = next(self._numbers)
        return self.ruled(call, number, evaluation, wall_ms, mono_ns, seq, None, None, level)

    def may_be_granted(self, refused: Evaluation) -> bool:
        """Returns False if no grant can be for this call, without a look at the grants."""
        if refused.refused_by:
            return True
        return bool(refused.limited_by) and os.path.exists(self.gates.approvals_path)

    def settled(
        self,
        refused: Evaluation,
        call: Call,
        call_id: str,
        wall_ms: int,
        mono_ms: int,
        args_text: bytes | None,
        counters: Counters | None = None,
        added: Settled | None = None,
    ) -> Evaluation:
        """Asks the grants about a call that a rule refuses (no-call-waits).

        `counters` are those with which it was refused; None for the run's own. `added` is a refusal
        by plugins: then nobody is asked, because no answer of a person could let the call pass.
        """
        if added is not None:
            return self.with_added(refused, added)
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
            counters=counters,
        )

    def ruled(
        self,
        call: ToolCall,
        number: int,
        evaluation: Evaluation,
        wall_ms: int,
        mono_ns: int,
        seq: int,
        args_text: bytes | None,
        targets: Targets | None = None,
        level: CallLevel | None = None,
    ) -> Ruling:
        """Turns an evaluation into a ruling, and journals it."""
        ruling = Ruling(call, f"{self._shim_id}.{number}", evaluation, mono_ns, self)
        ruling.targets, ruling.level = targets, level
        try:
            self.records.decided(ruling, wall_ms, seq, args_text, self.engine.policies)
        except JournalUnavailable as error:
            asked = asked_of(call)
            ruling.assessment = self.unrecorded(evaluation, asked, str(error))
            if evaluation.forwarded and not ruling.is_allowed:
                self.count_as_refused(ruling.decision.action)
        return ruling

    def over(self, call: Call) -> Evaluation | None:
        """Returns the refusal of a call that is stopped, or None. Needs no lock.

        A call is stopped by the kill switch, by the end of its run, or by a missing policy. No
        rule is asked about it.
        """
        stop = self._stops.find(call.server_name, call.tool_name)
        if stop is not None:
            return self.engine.refusal(refusal_of(stop))
        ended = self._state.terminated()
        if ended is not None:
            return self.engine.refusal(terminated(ended.code, ended.message))
        return None if self.refusal is None else self.engine.refusal(self.refusal)

    def _failure(self, call: Call, summary: str) -> Evaluation:
        over = self.over(call)
        if over is not None:
            return over
        return self.engine.failure(call, ReasonCode.EVALUATION_ERROR, summary)

    def masked(self, decision: Decision, args: dict[str, Any] | None) -> Decision:
        """Masks secrets in a refusal: its hint may repeat the call's arguments."""
        return masked_refusal(decision, args, self._previews.safe)

    def unrecorded(self, evaluation: Evaluation, call: Call, why: str) -> Evaluation:
        """Applies `decision_on_error` to a call that was allowed but could not be journalled."""
        if not evaluation.forwarded:
            return evaluation
        return self.engine.failure(
            call, ReasonCode.JOURNAL_UNAVAILABLE, f"the call could not be recorded: {why}"
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


def _not_lowered(error: StateUnusable) -> str:
    return f"it may bring text of strangers, and the level of the run cannot be lowered: {error}"
