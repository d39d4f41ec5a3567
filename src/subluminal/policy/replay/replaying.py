"""Decides the calls of one run again, in their recorded order.

Each call is evaluated with the counters of the replay and the recorded clock; breakers count the
recorded ends. A decision that no rule made stays as it was: another policy would not have undone a
kill switch, nor repaired a counter that could not be read.

The record does not contain everything. Where arguments are hidden, every possible value is tried.
If all possibilities agree, the call is certain. If they differ, the call is undetermined, and the
counters that they leave with different contents become uncertain. If the policies are exactly those
of the record, the recorded decision tells which of the possibilities was real.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from subluminal.contracts.counters import CountersFull, Update
from subluminal.contracts.vocabulary import (
    ACTION_STRICTNESS,
    TAINT_RANK,
    Action,
    ReasonCode,
    Severity,
    Taint,
)
from subluminal.policy.evaluation import Call, Evaluation
from subluminal.policy.replay.answers import Answers
from subluminal.policy.replay.comparing import Change, Doubt, Replayed, change_of, diverges
from subluminal.policy.replay.doubts import DoubtfulCounters
from subluminal.policy.replay.hidden_agents import asked_hidden, unread
from subluminal.policy.replay.hidden_args import PartialArgs, with_args
from subluminal.policy.replay.hidden_contents import ReadData, content_evaluations
from subluminal.policy.replay.hidden_packs import AskedAgain, Unanswered
from subluminal.policy.replay.hidden_targets import ReadLater, target_evaluations
from subluminal.policy.replay.layering import RunLayering, Setting
from subluminal.policy.replay.recorded import (
    RecordedAgent,
    RecordedAnswer,
    RecordedCall,
    RecordedDecision,
    RecordedEnd,
    RecordedLevel,
    Said,
    said_by,
)
from subluminal.policy.taint import lowering_to
from subluminal.policy.visit import JudgeOf

_ALLOW = Action.ALLOW
_ENDED = Said(Action.TERMINATE_RUN, None, Severity.CRITICAL, ReasonCode.RUN_TERMINATED, None, None)
_FAILURES: dict[str, ReasonCode] = {
    code: code for code in (ReasonCode.AMBIGUOUS_MESSAGE, ReasonCode.JOURNAL_UNAVAILABLE)
}
"""Reasons for which a policy applies `decision_on_error` without evaluating its rules."""


class _Answer(NamedTuple):
    """The replayed decision of one call; `said` is None if it is undetermined."""

    said: Said | None
    doubt: Doubt | None = None
    risk_classes: frozenset[str] = frozenset()


class RunReplay:
    """The replay of one run. Nothing is shared between runs."""

    def __init__(
        self,
        layering: RunLayering,
        answers: Iterable[RecordedAnswer] = (),
        read_later: ReadLater | None = None,
        start: Taint = Taint.SYSTEM,
        judge_of: JudgeOf | None = None,
        read_data: ReadData | None = None,
    ) -> None:
        """`read_later` reads targets that are not on record, as far as the arguments are.

        `start` is the level with which the run began. `judge_of` finds whom `kernel` rules ask.
        `read_data` finds classes of data in recorded arguments.
        """
        self._read_data = read_data
        self._judge_of = judge_of
        self.layering = layering
        self._read_later = read_later
        self._answers = Answers(answers)
        self._counters = DoubtfulCounters()
        self._counters.write(lowering_to(start))
        self._start = start
        """the lowest level with which the run, or a policy of it, starts"""
        self._is_set = False
        """whether a person has set the level: then no start lowers it"""
        self._levels: list[RecordedLevel] = []
        """changes of the level since the call before"""
        self._open: dict[str, tuple[int, list[Evaluation]]] = {}
        """call_id to the start of the call and the evaluations whose breakers count its end"""
        self._as_recorded = True
        """whether exactly the recorded policies have decided every call so far, as recorded"""
        self._ended = False
        self._may_have_ended = False
        """whether an undetermined call may have ended the run"""
        self._rule_ended = False
        """whether a rule ended the run in the record"""
        self._diverged: str | None = None
        self._last_seq = 0
        self.unrecorded = 0
        """number of calls that the run counted and the record does not contain"""

    def decide(self, call: RecordedCall) -> Replayed:
        """Decides one call again. Calls must come in the order of their `seq`."""
        if call.seq == self._last_seq + 1:
            self._last_seq = call.seq
        else:
            self._note_gap(call.seq)
        was = call.decision.said
        answer = self._answer(call)
        now = answer.said
        if now is not None and now.action is Action.TERMINATE_RUN and now.rule_id is not None:
            self._ended = True
        self._rule_ended = self._rule_ended or call.decision.ends_run
        depends_on = self._diverged
        change = change_of(was, now)
        if diverges(was, now):
            self._diverged = depends_on or call.call_id
        if change is not Change.SAME:
            self._as_recorded = False
        return Replayed(call, change, now, depends_on, answer.doubt, answer.risk_classes)

    def change_level(self, change: RecordedLevel) -> None:
        """Notes a change of the level that no call made; the next call meets it."""
        self._levels.append(change)

    def resolve(self, agent: RecordedAgent) -> None:
        """Takes the facts about the agent that hold for the calls from now on."""
        self.layering.agent = agent

    def _meet_levels(self, setting: Setting) -> None:
        """Brings the level up to a call: what its policies start with, and what came before it."""
        engine = setting.engine
        if TAINT_RANK[engine.start] > TAINT_RANK[self._start]:
            self._start = engine.start
            if not self._is_set:
                self._write(lowering_to(engine.start))
        for change in self._levels:
            if change.raises:
                self._is_set = True
                self._counters.set_level(TAINT_RANK[change.to])
            elif change.server_name is not None:
                self._write(lowering_to(engine.read_from(change.server_name)[0]))
            else:
                self._write(lowering_to(change.to))
        self._levels.clear()

    def end(self, ended: RecordedEnd) -> None:
        """Lets breakers count the end of a call, if the replay forwarded it too."""
        began_ms, evaluations = self._open.pop(ended.call_id, (0, []))
        if not evaluations:
            return
        mono_ms = began_ms + ended.latency_ms if ended.mono_ms is None else ended.mono_ms
        learnt = [
            each.learn(ended.status, ended.latency_ms, self._counters, mono_ms)
            for each in evaluations
        ]
        if len(learnt) > 1:
            self._counters.doubt(learnt)
        if learnt[0]:
            self._write(learnt[0])

    def _note_gap(self, seq: int) -> None:
        if not seq:
            return
        missing = seq - self._last_seq - 1
        if missing > 0:
            self.unrecorded += missing
            self._counters.doubt_everything()
        self._last_seq = max(seq, self._last_seq)

    def _answer(self, call: RecordedCall) -> _Answer:
        recorded = call.decision
        setting = self.layering.setting(call)
        self._meet_levels(setting)
        if not recorded.by_rules and self._stands(recorded):
            return _Answer(recorded.said)
        if self._ended:
            return _Answer(_ENDED)
        if self._may_have_ended:
            return _Answer(None, Doubt.COUNTERS)
        if not setting.is_as_recorded:
            self._as_recorded = False
        answer = self._by_policy(call, setting)
        return _beside_missing(answer, recorded, setting.missing) if setting.missing else answer

    def _stands(self, recorded: RecordedDecision) -> bool:
        """Whether no rule refused this call, but a person, or a ledger that was out of reach."""
        said = recorded.said
        if said.reason_code == ReasonCode.RUN_TERMINATED:
            return recorded.was_killed or not self._rule_ended
        return said.reason_code in (ReasonCode.KILL_SWITCH, ReasonCode.EXECUTIONS_UNAVAILABLE)

    def _by_policy(self, call: RecordedCall, setting: Setting) -> _Answer:
        recorded = call.decision
        said = recorded.said
        asked = self._asked(call, setting)
        if not recorded.by_rules and said.reason_code in _FAILURES:
            failed = setting.engine.failure(asked, _FAILURES[said.reason_code], "")
            if failed.forwarded:
                self._lower_unjudged(call, setting)
            return _Answer(said_by(failed))
        self._counters.was_asked = False
        try:
            found = self._evaluations(call, asked, setting)
        except Unanswered as error:
            return self._unknown(said, error.doubt)
        if (
            not recorded.by_rules
            and _failed_outside(said)
            and not any(_failed_outside(said_by(each)) for each in found)
        ):
            if said.action is _ALLOW:
                self._lower_unjudged(call, setting)
            return _Answer(said)
        if len(found) == 1 and not self._counters.was_asked:
            return self._certain(call, asked, setting, found[0])
        return self._settled(call, asked, setting, found)

    def _asked(self, call: RecordedCall, setting: Setting) -> Call:
        asked = Call(
            *(call.server_name, call.tool_name, call.args, call.args_hash),
            targets=call.targets,
            provider=call.provider,
            given=unread(call.given),
        )
        if call.decision.pack is not None:
            asked = replace(asked, judgement=call.decision.pack.judgement)
        if self._judge_of is not None and setting.engine.needs_judge(asked):
            judge = self._judge_of(asked, call.run_id, call.wall_ms)
            asked = replace(asked, judge=AskedAgain(judge))
        return asked

    def _evaluations(self, call: RecordedCall, asked: Call, setting: Setting) -> list[Evaluation]:
        """Evaluates a call for everything that it could have been.

        Raises Unanswered if that is too much, or if the record does not tell enough.
        """
        hidden = setting.hidden_agents
        doubt = None if hidden is None else hidden.doubt(call, self.layering.agent)
        if doubt is not None:
            raise Unanswered(doubt)
        found = self._possible(call, asked, setting)
        if found is None:
            raise Unanswered(Doubt.ARGUMENTS)
        if asked_hidden(asked.given):
            raise Unanswered(Doubt.GIVEN)
        return found

    def _unknown(self, said: Said, doubt: Doubt) -> _Answer:
        """Answers for a call that cannot be evaluated. It may have counted anything."""
        self._counters.doubt_everything()
        return _Answer(said) if self._as_recorded else _Answer(None, doubt)

    def _lower_unjudged(self, call: RecordedCall, setting: Setting) -> None:
        """Lowers the run for a call that was forwarded although no rule judged it."""
        ambiguous = call.decision.said.reason_code == ReasonCode.AMBIGUOUS_MESSAGE
        tool_name = None if ambiguous else call.tool_name
        self._write(lowering_to(setting.engine.unjudged(call.server_name, tool_name)))

    def _possible(
        self, call: RecordedCall, asked: Call, setting: Setting
    ) -> list[Evaluation] | None:
        """Evaluates a call for everything that its arguments could have been and touched."""
        if not setting.engine.asks_contents and asked.given is None:
            return self._with_targets(call, asked, setting)
        return content_evaluations(
            lambda tried: self._with_targets(call, tried, setting),
            *(asked, setting.engine, self._read_data),
        )

    def _with_targets(
        self, call: RecordedCall, asked: Call, setting: Setting
    ) -> list[Evaluation] | None:
        args = call.args
        if call.targets is not None or args is None or not setting.engine.needs_targets(asked):
            return self._with_args(call, asked, setting)
        later = None
        if self._read_later is not None and not isinstance(args, PartialArgs):
            later = self._read_later(call.server_name, call.tool_name, args)
        if later is not None and later[1]:
            return self._with_args(call, replace(asked, targets=later[0]), setting)
        return target_evaluations(
            lambda hidden: self._with_args(call, replace(asked, targets=hidden), setting),
            None if later is None else later[0],
        )

    def _with_args(
        self, call: RecordedCall, asked: Call, setting: Setting
    ) -> list[Evaluation] | None:
        args = call.args
        if not isinstance(args, PartialArgs):
            return [self._evaluation(call, asked, setting)]
        return setting.possibilities.evaluations(
            lambda tried: self._evaluation(call, with_args(asked, tried), setting), args
        )

    def _evaluation(self, call: RecordedCall, asked: Call, setting: Setting) -> Evaluation:
        """Evaluates the policies, and applies the answers of the people whom they ask."""

        def evaluate(given: Call) -> Evaluation:
            return setting.engine.evaluate(
                given, self._counters, wall_ms=call.wall_ms, mono_ms=call.mono_ms
            )

        found = evaluate(asked)
        if found.forwarded or not (found.refused_by or found.limited_by):
            return found
        layers = {each.layer.value for each in setting.engine.policies}
        return self._answers.settle(call, asked, found, evaluate, layers)

    def _certain(
        self, call: RecordedCall, asked: Call, setting: Setting, chosen: Evaluation
    ) -> _Answer:
        """Counts the only possible evaluation, and returns its decision."""
        updates = chosen.updates
        if updates and not self._write(updates):
            full = setting.engine.failure(asked, ReasonCode.EVALUATION_ERROR, "")
            return _Answer(said_by(full))
        if chosen.grants:
            self._answers.use(chosen)
        self._watch(call, [chosen])
        return _Answer(said_by(chosen), None, chosen.risk_classes)

    def _settled(
        self, call: RecordedCall, asked: Call, setting: Setting, found: list[Evaluation]
    ) -> _Answer:
        """Counts the evaluation that fits the record; undetermined if the others differ."""
        said = call.decision.said
        all_said = [said_by(each) for each in found]
        fitting = [each for each, told in zip(found, all_said, strict=True) if told == said]
        if self._as_recorded and fitting:
            # The same policies in the same state decided this, so nothing else was possible.
            found, all_said = fitting, [said]
        chosen = fitting[0] if fitting else found[0]
        if self._counters.was_asked:
            return self._unsettled(call, setting, [chosen, *found])
        self._counters.doubt([each.updates for each in found])
        answer = self._certain(call, asked, setting, chosen)
        self._watch(call, [chosen, *(each for each in found if each is not chosen)])
        if all(told == all_said[0] for told in all_said):
            return answer
        ends = any(told.action is Action.TERMINATE_RUN for told in all_said)
        self._may_have_ended = self._may_have_ended or ends
        return _Answer(None, Doubt.ARGUMENTS)

    def _unsettled(self, call: RecordedCall, setting: Setting, found: list[Evaluation]) -> _Answer:
        """Counts a call that read an uncertain counter: it may have been forwarded or refused."""
        either = [replace(each, forwarded=passed) for each in found for passed in (True, False)]
        for each in either:
            self._counters.doubt_updates(each.updates)
        self._write(found[0].updates)
        self._answers.use(found[0])
        self._watch(call, either)
        if self._as_recorded:
            return _Answer(call.decision.said)  # whatever the counters were, this was the decision
        self._may_have_ended = self._may_have_ended or setting.may_end_run
        return _Answer(None, Doubt.COUNTERS)

    def _watch(self, call: RecordedCall, evaluations: list[Evaluation]) -> None:
        for each in evaluations:
            for visit in each.visits:
                if visit.watches:
                    self._open[call.call_id] = (call.mono_ms, evaluations)
                    return

    def _write(self, updates: list[Update]) -> bool:
        try:
            self._counters.write(updates)
        except CountersFull:
            return False
        return True


def _failed_outside(said: Said) -> bool:
    """Whether no rule could be evaluated: a name was invalid, or something else failed."""
    return said.rule_id is None and said.reason_code == ReasonCode.EVALUATION_ERROR


def _beside_missing(
    answer: _Answer, recorded: RecordedDecision, missing: frozenset[str]
) -> _Answer:
    """Limits an answer if a layer is missing: its decision was at most as strict as the record."""
    now, was = answer.said, recorded.said
    if now is None:
        return answer
    if was.action is _ALLOW:
        return answer._replace(said=was if now.action is _ALLOW else now)
    if recorded.policy_hash in missing:
        stricter = ACTION_STRICTNESS[now.action] > ACTION_STRICTNESS[was.action]
        return answer._replace(said=now if stricter else was)
    if ACTION_STRICTNESS[now.action] >= ACTION_STRICTNESS[was.action]:
        return answer
    return _Answer(None, Doubt.POLICY)
