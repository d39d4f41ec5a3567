"""One intent on its way: envelope, pack, execution ledger, policies, record.

The pack is asked outside the run's lock: its guards are somebody else's code. Its answer goes with
the call into `host.begin`, where policies, stops and grants are asked, and where the decision is
journalled. An intent that executes is claimed in the execution ledger before that. If it does not
execute in the end, the claim is released.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from subluminal import __version__
from subluminal.adapters.in_process.any_level import CAPS, any_level
from subluminal.adapters.in_process.rollout import Failed, Legacy, ask_legacy, legacy_judgement
from subluminal.canonical import args_hash, encode
from subluminal.clock import SystemClock
from subluminal.contracts.call import BUILT_IN, ToolCall
from subluminal.contracts.intents import Judgement
from subluminal.contracts.vocabulary import Taint, Transport
from subluminal.core.intents.confirming import Confirmed
from subluminal.core.intents.outcomes import Adjudged, AskedPack, judgement
from subluminal.core.intents.packs import LoadedPack
from subluminal.kernel.adjudication import adjudicate_with_trace, taint_refusal
from subluminal.kernel.audit import AuditRecord, Supersedes, build_audit_record
from subluminal.kernel.auditing import Adjudicated, Confirmation, adjudicate_and_audit
from subluminal.kernel.context import RuntimeContext
from subluminal.kernel.decisions import Decision, Escalate, Execute, RequestConfirmation
from subluminal.kernel.envelope import IntentActor, IntentEnvelope, build_envelope
from subluminal.kernel.executions import ExecutionLedger, ExecutionStatus, LedgerEntry
from subluminal.kernel.learning import deciding_guard
from subluminal.kernel.observing import ShadowMetric, observed
from subluminal.kernel.plain import plain_json
from subluminal.kernel.planning import Plan
from subluminal.kernel.refusals import told
from subluminal.kernel.rollout import Divergence, Rollout, RolloutMode, classify_divergence
from subluminal.kernel.taint import Origin, merge_taint, taint_rank


class Intent(NamedTuple):
    """What an agent wants, and how it wants it decided."""

    kind: str
    payload: Any
    state: Any
    nonce: str
    principal: str
    taint: Taint | None
    legacy: Legacy | None
    deadline_ms: float | None
    plan: Plan | None
    claims: bool
    """whether it is to be executed, so that it is claimed"""


class Judged(Struct):
    """What the pack, or the code that it is to replace, says about an intent."""

    judgement: Judgement
    decision: Decision | None
    """the pack's decision; None if the pack was not asked"""
    envelope: IntentEnvelope
    """what to execute"""
    records: list[AuditRecord] = []
    ledger_hit: LedgerEntry | None = None
    claimed: str | None = None
    """hash that is claimed in the execution ledger"""


class Collector:
    """An audit sink that keeps records until the call is journalled."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    def emit(self, record: AuditRecord, /) -> None:
        """Keeps a record."""
        self.records.append(record)


class _ShownKinds:
    """An execution ledger that gets the kinds of intents with secrets masked."""

    def __init__(self, ledger: ExecutionLedger, shown: Callable[[str], str]) -> None:
        self._shown = shown
        self._ledger = ledger

    def check(self, intent_hash: str, /) -> LedgerEntry | None:
        return self._ledger.check(intent_hash)

    def claim(self, entry: LedgerEntry, /) -> LedgerEntry | None:
        return self._ledger.claim(replace(entry, kind=self._shown(entry.kind)))

    def finish(self, intent_hash: str, status: ExecutionStatus, /) -> None:
        self._ledger.finish(intent_hash, status)

    def release(self, intent_hash: str, /) -> None:
        self._ledger.release(intent_hash)


class Judging:
    """Asks one pack about intents of one run."""

    def __init__(
        self,
        loaded: LoadedPack,
        run_id: str,
        context: RuntimeContext,
        rollout: Rollout,
        ledger: ExecutionLedger | None,
        find: Callable[[str, str], Confirmed | None],
        shown: Callable[[str], str],
    ) -> None:
        """`rollout` holds as long as the context has none.

        `find` looks for a person's yes, by the kind of an intent and its args_hash.
        `shown` masks the secrets in a question, as they were masked for the person.
        """
        self._pack = loaded.pack
        self._asked = AskedPack(loaded.name, loaded.version, loaded.fingerprint)
        self._run_id = run_id
        self._context = context
        self._rollout = rollout
        self._ledger = None if ledger is None else _ShownKinds(ledger, shown)
        self._find = find
        self._shown = shown
        self._clock = SystemClock()

    def envelope(self, intent: Intent, level: Taint) -> IntentEnvelope:
        """Builds the envelope of an intent; `level` is that of the run.

        Raises AmbiguousJSON if the payload has no canonical form.
        """
        cap = merge_taint(CAPS.get(intent.principal, Taint.UNTRUSTED), level)
        is_contaminated = taint_rank(level) < taint_rank(Taint.TRUSTED)
        return build_envelope(
            intent.kind,
            intent.payload,
            actor=IntentActor(intent.principal, self._run_id),
            taint=cap if intent.taint is None else merge_taint(cap, intent.taint),
            nonce=intent.nonce,
            created_at=self._clock.now_iso(),
            origin=Origin.RETRIEVED if is_contaminated else None,
        )

    def judge(self, intent: Intent, envelope: IntentEnvelope, level: Taint) -> Judged:
        """Asks whom the rollout says. Raises what the execution ledger raises."""
        mode = self._mode(intent)
        if mode is RolloutMode.ENFORCE or intent.legacy is None:
            return self._enforced(intent, envelope, level)
        said = ask_legacy(intent.legacy)
        if mode is RolloutMode.OFF:
            return Judged(legacy_judgement(said, self._asked, None), None, envelope)
        return self._shadowed(intent, envelope, said)

    def release(self, judged: Judged) -> str | None:
        """Releases the claim of an intent that does not execute.

        Returns why that failed, or None. Then the entry stays claimed, and is unknown once this
        process is gone: a retry is told so, and does not run.
        """
        if self._ledger is None or judged.claimed is None:
            return None
        return _failure(partial(self._ledger.release, judged.claimed))

    def settle(self, judged: Judged, status: ExecutionStatus) -> str | None:
        """Says in the execution ledger how an intent ended. Returns as `release`."""
        if self._ledger is None or judged.claimed is None:
            return None
        return _failure(partial(self._ledger.finish, judged.claimed, status))

    def _mode(self, intent: Intent) -> RolloutMode:
        if intent.legacy is None:
            return RolloutMode.ENFORCE
        return (self._context.rollout or self._rollout).mode_of(intent.kind)

    def _shadowed(
        self, intent: Intent, envelope: IntentEnvelope, said: bool | Decision | Failed
    ) -> Judged:
        started = self._clock.mono_ms()
        decision, steps = adjudicate_with_trace(
            envelope, intent.state, self._pack.policy, kill=self._context.kill
        )
        divergence = classify_divergence(False if isinstance(said, Failed) else said, decision)
        if divergence is not Divergence.NONE:
            event = ShadowMetric(intent.kind, divergence, envelope.intent_hash)
            sink = self._context.shadow or self._context.metrics
            observed(sink, lambda sink: sink.record_shadow_divergence(event))
        record = build_audit_record(
            envelope=envelope,
            decision=decision,
            at=self._clock.now_iso(),
            duration_ms=self._clock.mono_ms() - started,
            plan=intent.plan,
            policy_version=self._pack.version,
            kernel_version=__version__,
        )
        found = self._adjudged(envelope, decision, deciding_guard(steps), divergence)
        kernel = judgement(self._asked, found).kernel
        answer = legacy_judgement(said, self._asked, kernel)
        return Judged(answer, decision, envelope, [record])

    def _enforced(self, intent: Intent, envelope: IntentEnvelope, level: Taint) -> Judged:
        sink = Collector()
        done = self._audited(intent, envelope, sink, None)
        yes = self._yes_to(done)
        if yes is not None:
            sink = Collector()
            done = self._audited(intent, envelope, sink, yes)
        found = self._found(done)
        answer = judgement(self._asked, found)
        if done.asked is not None and intent.claims:
            # The grant is used when the call is decided, which needs the question.
            question = judgement(self._asked, found._replace(verdict=done.asked))
            answer = replace(question, kernel=answer.kernel)
        else:
            answer = replace(answer, is_answered=False)
        judged = Judged(
            replace(answer, level=level),
            done.decision,
            _own_copy(done),
            sink.records,
            done.ledger_hit,
        )
        if isinstance(done.decision, Execute) and self._ledger is not None and intent.claims:
            judged.claimed = done.envelope.intent_hash
        return judged

    def _audited(
        self,
        intent: Intent,
        envelope: IntentEnvelope,
        sink: Collector,
        yes: tuple[Confirmation, Supersedes] | None,
    ) -> Adjudicated:
        confirmation, supersedes = yes or (None, None)
        if confirmation is not None and confirmation.intent_hash != envelope.intent_hash:
            supersedes = None  # the question was about what the pack makes of this envelope
        held = any_level(self._ledger) if intent.claims else None
        return adjudicate_and_audit(
            envelope,
            intent.state,
            self._pack.policy,
            sink=sink,
            clock=self._clock,
            ledger=held,
            resolve_resource_version=None if held is None else held.expect,
            context=self._context,
            plan=intent.plan,
            confirmation=confirmation,
            supersedes=supersedes,
            deadline_ms=intent.deadline_ms,
            policy_version=self._pack.version,
        )

    def _yes_to(self, done: Adjudicated) -> tuple[Confirmation, Supersedes] | None:
        """Returns a person's yes to the very question that the pack asks, if there is one.

        The question may be about an envelope that the pack rewrote: that is what would run.
        """
        said = judgement(self._asked, self._found(done))
        if said.requirement is None or said.refusal is None:
            return None
        envelope = done.envelope
        yes = self._find(envelope.kind, args_hash(args_of(envelope)))
        if yes is None or yes.question != self._shown(said.refusal.summary):
            return None
        hashed, now = envelope.intent_hash, self._clock.now_iso()
        return (
            Confirmation(hashed, now, yes.token, has_authority=True),
            Supersedes(hashed, yes.at, "confirmation_resolved", yes.token),
        )

    def _found(self, done: Adjudicated) -> Adjudged:
        verdict = self._answerable(done.envelope, done.decision)
        return self._adjudged(done.envelope, verdict, done.guard)

    def _answerable(self, envelope: IntentEnvelope, decision: Decision) -> Decision:
        """Returns the decision, or what is left of it if no person's answer could help."""
        if not isinstance(decision, Escalate | RequestConfirmation):
            return decision
        return taint_refusal(envelope, self._pack.policy) or decision

    def _adjudged(
        self,
        envelope: IntentEnvelope,
        decision: Decision,
        guard: str | None,
        divergence: Divergence | None = None,
    ) -> Adjudged:
        return Adjudged(
            decision, envelope.kind, envelope.intent_hash, Taint(envelope.taint), guard, divergence
        )


def _own_copy(done: Adjudicated) -> IntentEnvelope:
    """Returns the envelope that was decided, with a payload that nobody else holds.

    Guards and sinks had the other one in their hands, and may change it at any time.
    """
    decided = done.record.envelope
    if "payload" not in decided:
        return done.envelope  # null, which nobody can change
    return replace(done.envelope, payload=plain_json(decided["payload"]))


def _failure(change: Callable[[], None]) -> str | None:
    """Changes the execution ledger; returns why that failed, or None."""
    try:
        change()
    except Exception as error:  # noqa: BLE001 - the ledger may be the agent's own
        return f"an intent stays claimed in the execution ledger: {told(error)}"
    return None


def args_of(envelope: IntentEnvelope) -> dict[str, Any]:
    """Returns the payload as the arguments of a call."""
    payload = envelope.payload
    return payload if isinstance(payload, dict) else {"payload": payload}


def call_of(pack_id: str, judged: Judged) -> tuple[ToolCall, bytes]:
    """Returns what would run as a tool call, and its arguments as canonical JSON."""
    envelope = judged.envelope
    args = args_of(envelope)
    text = encode(args)
    call = ToolCall(
        server_name=pack_id,
        tool_name=envelope.kind,
        args=args,
        args_hash=args_hash(args),
        bytes_in=len(text),
        transport=Transport.IN_PROCESS,
        provider=BUILT_IN,
        judgement=judged.judgement,
    )
    return call, text
