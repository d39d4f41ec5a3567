"""`adjudicate_and_audit`: the entry point for production. Ledger, decision, metrics, record.

An intent executes if its hash could be claimed and its record could be kept. A sink that fails
raises, and gives the claim free again. Sinks of metrics and learning only watch.

A REWRITE is adjudicated once more, as the envelope that would run. Both are on record: the REWRITE
of the original, then the decision about the rewritten envelope, which supersedes it if it executes.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from subluminal import __version__
from subluminal.kernel.adjudication import (
    TraceStep,
    adjudicate_with_deadline,
    adjudicate_with_trace,
    changed_since_hashed,
    taint_refusal,
)
from subluminal.kernel.audit import AuditRecord, Supersedes, build_audit_record, wire_of
from subluminal.kernel.basis import basis
from subluminal.kernel.context import RuntimeContext
from subluminal.kernel.decisions import (
    Decision,
    Escalate,
    Execute,
    Refuse,
    RequestConfirmation,
    Rewrite,
)
from subluminal.kernel.envelope import IntentEnvelope
from subluminal.kernel.executions import ExecutionLedger, LedgerEntry
from subluminal.kernel.judging import NotADecision
from subluminal.kernel.learning import deciding_guard
from subluminal.kernel.observing import (
    AuditSink,
    Clock,
    DecisionMetric,
    LedgerOp,
    RefusalMetric,
    SinkFailure,
    learning_event,
    observed,
)
from subluminal.kernel.planning import Plan, plan_fingerprint
from subluminal.kernel.policies import PolicyBundle
from subluminal.kernel.refusals import guard_panic, killed, kind_of, replay_suppressed, stated, told


class Confirmation(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A person's yes to one intent."""

    intent_hash: str
    at: str
    token: str | None = None
    has_authority: bool = False
    """whether it also answers an ESCALATE; a user's own yes does not"""


class Adjudicated(Struct, frozen=True):
    """A decision that is on record."""

    decision: Decision
    record: AuditRecord
    ledger_hit: LedgerEntry | None
    """the entry that had the hash already"""
    envelope: IntentEnvelope
    """what to execute: the envelope that was handed in, or the rewritten one"""
    guard: str | None = None
    """the name of the guard that decided, if it has one"""
    asked: RequestConfirmation | Escalate | None = None
    """the question that a person's confirmation answered"""


def adjudicate_and_audit(
    envelope: IntentEnvelope,
    state: Any,
    policy: PolicyBundle,
    *,
    sink: AuditSink,
    clock: Clock,
    ledger: ExecutionLedger | None = None,
    context: RuntimeContext | None = None,
    plan: Plan | None = None,
    confirmation: Confirmation | None = None,
    supersedes: Supersedes | None = None,
    resolve_resource_version: Callable[[IntentEnvelope, Any], str | None] | None = None,
    rate_limit_rollback: Callable[[], None] | None = None,
    deadline_ms: float | None = None,
    policy_version: str | None = None,
) -> Adjudicated:
    """Decides, claims and records. If it raises (ledger, sink, clock), nothing may execute."""
    audited = _Audited(state, policy, sink, clock, ledger, context or RuntimeContext())
    audited.plan = plan
    audited.confirmation = confirmation
    audited.resolve_resource_version = resolve_resource_version
    audited.deadline_ms = deadline_ms
    audited.policy_version = policy_version
    executes = False
    try:
        done = audited.adjudicate(envelope, supersedes)
        executes = type(done.decision) is Execute
    except BaseException:
        audited.release()
        raise
    finally:
        if rate_limit_rollback is not None and not executes:
            _undone(rate_limit_rollback)
    return done


def _undone(rollback: Callable[[], None]) -> None:
    try:
        rollback()
    except Exception:  # noqa: BLE001 - a counter that cannot be put back changes no decision
        return


class _Audited:
    """One call of `adjudicate_and_audit`."""

    plan: Plan | None = None
    confirmation: Confirmation | None = None
    resolve_resource_version: Callable[[IntentEnvelope, Any], str | None] | None = None
    deadline_ms: float | None = None
    policy_version: str | None = None

    def __init__(
        self,
        state: Any,
        policy: PolicyBundle,
        sink: AuditSink,
        clock: Clock,
        ledger: ExecutionLedger | None,
        context: RuntimeContext,
    ) -> None:
        self._state = state
        self._policy = policy
        self._sink = sink
        self._clock = clock
        self._ledger = ledger
        self._context = context
        self._steps: list[TraceStep] = []
        self._claimed: str | None = None
        self._asked: RequestConfirmation | Escalate | None = None
        self._resource_version: str | None = None
        self._started = clock.mono_ms()

    def adjudicate(self, envelope: IntentEnvelope, supersedes: Supersedes | None) -> Adjudicated:
        wire = wire_of(envelope)  # before any guard can change it
        decision, hit = self._decided(envelope)
        if type(decision) is Rewrite:
            first = self._recorded(envelope, wire, decision, supersedes)
            return self._second_pass(first, decision.rewritten)
        record = self._recorded(envelope, wire, decision, supersedes)
        return self._done(decision, record, hit, envelope)

    def _done(
        self,
        decision: Decision,
        record: AuditRecord,
        hit: LedgerEntry | None,
        envelope: IntentEnvelope,
    ) -> Adjudicated:
        guard = deciding_guard(self._steps)
        return Adjudicated(decision, record, hit, envelope, guard, self._asked)

    def release(self) -> None:
        """Gives the claim free, if there is one: what it was for does not execute."""
        if self._ledger is not None and self._claimed is not None:
            self._ledger.release(self._claimed)

    def _second_pass(self, first: AuditRecord, rewritten: IntentEnvelope) -> Adjudicated:
        wire = wire_of(rewritten)
        decision, hit = self._decided(rewritten)
        if type(decision) is Rewrite:
            error = NotADecision("the policy rewrites what it rewrote")
            decision = guard_panic((), "business", error, None, deciding_guard(self._steps))
        follows = None
        if type(decision) is Execute:
            follows = Supersedes(first.intent_hash, first.at, "rewrite_executed")
        record = self._recorded(rewritten, wire, decision, follows)
        return self._done(decision, record, hit, rewritten)

    def _decided(self, envelope: IntentEnvelope) -> tuple[Decision, LedgerEntry | None]:
        kill = self._context.kill
        if kill is not None:
            return killed(kill, tenant=self._context.id), None
        hit = self._held(envelope)
        if hit is not None:
            return _suppressed(hit), hit
        decision = self._adjudged(envelope)
        decision = self._confirmed(envelope, decision)
        if type(decision) is Execute:
            self._resolve(envelope)
            # Not only guards had it in their hands since it was hashed.
            decision = changed_since_hashed(envelope) or decision
        if type(decision) is Execute:
            hit = self._claim(envelope)
            if hit is not None:
                return _suppressed(hit), hit
        return decision, None

    def _adjudged(self, envelope: IntentEnvelope) -> Decision:
        if self.deadline_ms is None:
            decision, self._steps = adjudicate_with_trace(envelope, self._state, self._policy)
            return decision
        left_ms = self.deadline_ms - (self._clock.mono_ms() - self._started)
        self._steps = []
        return adjudicate_with_deadline(
            envelope,
            self._state,
            self._policy,
            deadline_ms=left_ms,
            clock=self._clock,
            steps=self._steps,
        )

    def _resolve(self, envelope: IntentEnvelope) -> None:
        if self.resolve_resource_version is not None:
            self._resource_version = self.resolve_resource_version(envelope, self._state)

    def _held(self, envelope: IntentEnvelope) -> LedgerEntry | None:
        if self._ledger is None or type(envelope) is not IntentEnvelope:
            return None
        if type(envelope.intent_hash) is not str:
            return None
        asked_at = self._clock.mono_ms()
        hit = self._ledger.check(envelope.intent_hash)
        self._tell_ledger_op("check", "miss" if hit is None else "hit", envelope, asked_at)
        return hit

    def _claim(self, envelope: IntentEnvelope) -> LedgerEntry | None:
        if self._ledger is None:
            return None
        asked_at = self._clock.mono_ms()
        entry = LedgerEntry(
            envelope.intent_hash,
            self._clock.now_iso(),
            envelope.actor.session_id,
            envelope.kind,
            self._resource_version or "",
        )
        hit = self._ledger.claim(entry)
        if hit is None:
            self._claimed = envelope.intent_hash
        self._tell_ledger_op("claim", "ok" if hit is None else "duplicate", envelope, asked_at)
        return hit

    def _confirmed(self, envelope: IntentEnvelope, decision: Decision) -> Decision:
        """Turns a question that a person has answered into an EXECUTE, if the taint allows it."""
        said = self.confirmation
        if said is None or said.intent_hash != envelope.intent_hash:
            return decision
        if type(decision) is not RequestConfirmation and not (
            type(decision) is Escalate and said.has_authority
        ):
            return decision
        reason = basis(
            "confirmation",
            "received",
            confirmedAt=told(said.at),
            originalPrompt=_question(decision),
        )
        refusal = taint_refusal(envelope, self._policy)
        if refusal is not None:
            return refusal
        self._asked = decision
        return Execute((*decision.basis, reason))

    def _recorded(
        self,
        envelope: IntentEnvelope,
        wire: dict[str, Any],
        decision: Decision,
        supersedes: Supersedes | None,
    ) -> AuditRecord:
        took_ms = self._clock.mono_ms() - self._started
        self._tell(envelope, decision, took_ms)
        record = build_audit_record(
            envelope=wire,
            decision=decision,
            at=self._clock.now_iso(),
            duration_ms=took_ms,
            plan=self.plan,
            resource_version=self._resource_version,
            supersedes=supersedes,
            policy_version=self.policy_version,
            kernel_version=__version__,
        )
        try:
            self._sink.emit(record)
        except BaseException as error:
            failure = SinkFailure("audit", type(error).__name__, told(error))
            observed(self._context.metrics, lambda sink: sink.record_sink_failure(failure))
            raise
        return record

    def _tell(self, envelope: IntentEnvelope, decision: Decision, took_ms: float) -> None:
        metrics, kind = self._context.metrics, kind_of(envelope)
        intent_hash = stated(envelope, "intent_hash")
        counted = DecisionMetric(kind, decision.kind, took_ms, len(decision.basis), intent_hash)
        observed(metrics, lambda sink: sink.record_decision(counted))
        if type(decision) is Refuse:
            observed(
                metrics,
                lambda sink: sink.record_refusal(
                    RefusalMetric(kind, decision.refusal, intent_hash)
                ),
            )
        event = learning_event(
            envelope,
            decision,
            at=self._clock.now_iso(),
            duration_ms=took_ms,
            guard_id=deciding_guard(self._steps),
            plan_fingerprint=None if self.plan is None else plan_fingerprint(self.plan),
        )
        observed(self._context.learning, lambda sink: sink.record_outcome(event))

    def _tell_ledger_op(
        self, op: str, outcome: str, envelope: IntentEnvelope, asked_at: float
    ) -> None:
        event = LedgerOp(op, outcome, kind_of(envelope), self._clock.mono_ms() - asked_at)
        observed(self._context.metrics, lambda sink: sink.record_ledger_op(event))


def _question(asked: RequestConfirmation | Escalate) -> str:
    return asked.prompt if isinstance(asked, RequestConfirmation) else asked.reason


def _suppressed(holder: LedgerEntry) -> Refuse:
    return replay_suppressed(
        holder.intent_hash,
        previousAt=holder.at,
        sessionId=holder.session_id,
        kind=holder.kind,
        resourceVersion=holder.resource_version,
        status=str(holder.status),
    )
