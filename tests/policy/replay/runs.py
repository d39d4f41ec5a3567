"""Recorded runs as data: each call is decided by a policy first, then given to a replay."""

from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace
from tests.policy.desk import Teller, teller_of

from subluminal.canonical import args_hash
from subluminal.contracts.control import ApprovalGiven
from subluminal.contracts.decision import GrantRef, LayeredPolicyRef
from subluminal.contracts.events import DecisionMade, Explain
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import (
    Action,
    ApprovalAnswer,
    Layer,
    ReasonCode,
    Severity,
    Status,
    Taint,
)
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.replay.comparing import Replayed
from subluminal.policy.replay.layering import Layering
from subluminal.policy.replay.recorded import (
    RecordedAnswer,
    RecordedCall,
    RecordedDecision,
    RecordedEnd,
    RecordedLevel,
    RecordedLoad,
    recorded_decision,
)
from subluminal.policy.replay.replaying import RunReplay
from subluminal.policy.snapshot import Snapshot

Layers = list[tuple[Layer, Snapshot]]
IDENTITY = Identity()


def event_of(evaluation: Evaluation, policies: list[LayeredPolicyRef]) -> DecisionMade:
    """A decision event, as `core` writes it."""
    decision, would_be = evaluation.decision, evaluation.would_be
    return DecisionMade(
        action=decision.action,
        rule_id=decision.rule_id,
        severity=decision.severity,
        explain=Explain(summary="", reason_code=decision.reason_code),
        policy=evaluation.policy,
        backoff_ms=UNSET if decision.backoff_ms is None else decision.backoff_ms,
        would_be=UNSET if would_be is None else would_be,
        policies=policies if len(policies) > 1 else UNSET,
        grant=evaluation.grants[0] if evaluation.grants else UNSET,
    )


def said_outside(
    code: str, action: Action = Action.BLOCK, policies: list[LayeredPolicyRef] | None = None
) -> DecisionMade:
    """A decision that no rule made."""
    refs = policies or Engine([], IDENTITY).policies
    return DecisionMade(
        action=action,
        rule_id=None,
        severity=Severity.CRITICAL,
        explain=Explain(summary="", reason_code=code),
        policy=refs[0] if refs else Engine([], IDENTITY).policy,
    )


class Record:
    """Makes the record of one run under some layers."""

    def __init__(self, *layers: tuple[Layer, Snapshot]) -> None:
        self.layers = list(layers)
        self.engine = Engine(self.layers, IDENTITY)
        self.counters = MemoryCounters()
        self.items: list[RecordedCall | RecordedEnd | RecordedLevel] = []
        self.now_ms = 0
        self.answers: list[RecordedAnswer] = []
        self.granted: Any = ""
        """the grant that lies there, and passes every rule that refuses"""
        self.for_run = False
        self.rule_id = ""
        """the rule that the grant names; of limits, it passes only this one"""
        self.calls = 0
        self._decisions: dict[bytes, RecordedDecision] = {}

    def reload(self, *layers: tuple[Layer, Snapshot]) -> None:
        self.layers += layers
        self.engine = Engine(list(layers), IDENTITY)

    def call(
        self,
        tool: str = "push",
        args: dict[str, Any] | None = None,
        *,
        status: str | None = "OK",
        on_record: dict[str, Any] | None = None,
        event: DecisionMade | None = None,
        latency_ms: int = 1,
        seq: int | None = None,
        too_large: bool = False,
    ) -> str:
        """Makes a call a millisecond after the last; it ends at once if it passes."""
        self.now_ms += 1
        self.calls += 1
        given = None if too_large else args or {}
        hashed = args_hash(args or {})
        if event is None:
            asked = Call("git", tool, given, hashed, judge=Teller())
            found = self._settled(asked)
            self.counters.write(found.updates)
            event = event_of(found, self.engine.policies)
            passed = found.forwarded
        else:
            found, passed = None, event.action is Action.ALLOW
        call_id = f"call-{self.calls}"
        self.items.append(
            RecordedCall(
                run_id="run",
                call_id=call_id,
                seq=self.calls if seq is None else seq,
                server_name="git",
                tool_name=tool,
                args_hash=hashed,
                args=given if on_record is None else on_record,
                identity=IDENTITY,
                wall_ms=self.now_ms,
                mono_ms=self.now_ms,
                decision=self._decisions.setdefault(
                    msgspec.json.encode(event), recorded_decision(event)
                ),
            )
        )
        if passed and status is not None:
            self.now_ms += latency_ms
            if found is not None:
                learnt = found.learn(Status(status), latency_ms, self.counters, self.now_ms)
                self.counters.write(learnt)
            self.items.append(RecordedEnd(call_id, Status(status), latency_ms, self.now_ms))
        return call_id

    def _settled(self, asked: Call) -> Evaluation:
        """Evaluates, and if an access rule refuses, looks for a grant as `core.approvals` does."""

        def evaluate(call: Call) -> Evaluation:
            now = {"wall_ms": self.now_ms, "mono_ms": self.now_ms}
            return self.engine.evaluate(call, self.counters, **now)

        found = evaluate(asked)
        if found.forwarded or not self.granted:
            return found
        keys = frozenset(entry.grant_key for entry in found.refused_by)
        names = ("granted", "lifted")
        limits = frozenset(key for key in found.limited_by if key[1] == self.rule_id)
        again = evaluate(replace(asked, **{names[self.for_run]: keys}, excused=limits))
        if again.forwarded:
            again.grants = (GrantRef(grant_id=self.granted, approver="me"),)
        return again

    def answer(
        self,
        answer: str,
        rule_id: str,
        *,
        for_run: bool = False,
        layer: Layer | None = None,
        **more: Any,
    ) -> None:
        """A person's answer about `push` without arguments; what it approves passes from now on."""
        self.now_ms += 1
        expires_ms = more.pop("expires_ms", None)
        given = ApprovalGiven(
            answer=ApprovalAnswer(answer),
            by="me",
            layer=layer or self.layers[0][0],
            rule_id=rule_id,
            server_name="git",
            tool_name="push",
            args_hash=UNSET if for_run else args_hash({}),
            **more,
        )
        self.answers.append(RecordedAnswer(self.now_ms, given, expires_ms))
        self.granted, self.for_run, self.rule_id = given.grant_id or "", for_run, rule_id

    @property
    def loads(self) -> list[RecordedLoad]:
        return [
            RecordedLoad(layer, each.policy_id, each.policy_hash) for layer, each in self.layers
        ]

    def replay(
        self,
        candidate: Snapshot,
        layer: Layer | None = None,
        *,
        known: bool = True,
        loads: bool = True,
        answers: bool = True,
        read_later: Any = None,
        start: Taint = Taint.SYSTEM,
        judge_of: Any = teller_of,
        read_data: Any = None,
    ) -> tuple[list[Replayed], RunReplay, Layering]:
        """Every call of the run, decided again."""
        found = {each.policy_hash: each for _, each in self.layers} if known else {}
        layering = Layering(candidate, found.get, layer)
        run = RunReplay(
            layering.of_run(self.loads if loads else []),
            self.answers if answers else [],
            read_later,
            start,
            judge_of,
            read_data,
        )
        rows = []
        for item in self.items:
            if isinstance(item, RecordedCall):
                rows.append(run.decide(item))
            elif isinstance(item, RecordedLevel):
                run.change_level(item)
            else:
                run.end(item)
        return rows, run, layering


def changes(rows: list[Replayed]) -> list[str]:
    return [row.change.value for row in rows]


TERMINATED = said_outside(ReasonCode.RUN_TERMINATED, Action.TERMINATE_RUN)
