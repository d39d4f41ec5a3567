"""`adjudicate`: an envelope, the state and a policy give one decision. Pure and total.

The order is fixed: kill switch, version, hash, state guards, taint gate, auth guards, business
guards, default. The first opinion counts. What was passed on the way stands before the reasons of
the decision. Nothing that a guard does gets out: an exception, a value that is not a decision and a
changed envelope all become a refusal `guard_panic`.

An EXECUTE of a state guard still has to pass the taint gate, which comes later in the order:
otherwise UNTRUSTED would execute where the policy demands more.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from subluminal.contracts.vocabulary import Taint
from subluminal.kernel.basis import basis
from subluminal.kernel.decisions import Decision, Execute, Refuse, Rewrite
from subluminal.kernel.envelope import ENVELOPE_VERSION, IntentEnvelope, examine
from subluminal.kernel.judging import NotADecision, check_decision, check_rewrite
from subluminal.kernel.observing import Clock
from subluminal.kernel.policies import Guard, PolicyBundle, guard_name
from subluminal.kernel.refusals import (
    Kill,
    Passed,
    deadline_exceeded,
    default_deny,
    guard_panic,
    hash_mismatch,
    insufficient_taint,
    killed,
    propagation_violation,
    unsupported_version,
)
from subluminal.kernel.taint import RANK, is_contaminating

_VERSION_SUPPORTED = basis("schema", "version_supported")
_PASSED = {
    "state": basis("state", "transition_valid"),
    "taint": basis("taint", "level_permitted"),
    "auth": basis("auth", "scope_sufficient"),
    "business": basis("business", "rule_satisfied"),
}
_encode = msgspec.json.Encoder().encode


class TraceStep(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One step of an adjudication. The last one is the match; all others passed."""

    phase: str
    """kill, schema, state, taint, auth, business or default"""
    outcome: str
    """pass or match"""
    index: int | None = None
    """which guard of the phase, from 0"""
    guard_name: str | None = None


def adjudicate(
    envelope: IntentEnvelope, state: Any, policy: PolicyBundle, *, kill: Kill | None = None
) -> Decision:
    """Decides about one intent. Equal arguments give equal decisions, and nothing is raised."""
    return _Adjudication(envelope, state, policy).decide(kill)


def adjudicate_with_trace(
    envelope: IntentEnvelope, state: Any, policy: PolicyBundle, *, kill: Kill | None = None
) -> tuple[Decision, list[TraceStep]]:
    """`adjudicate`, and every step on the way."""
    steps: list[TraceStep] = []
    return _Adjudication(envelope, state, policy, steps).decide(kill), steps


def adjudicate_with_deadline(
    envelope: IntentEnvelope,
    state: Any,
    policy: PolicyBundle,
    *,
    deadline_ms: float,
    clock: Clock,
    kill: Kill | None = None,
    steps: list[TraceStep] | None = None,
) -> Decision:
    """`adjudicate` within a time. The clock is asked before each guard and at the end.

    A guard is not interrupted: one that takes too long is noticed when it returns. `steps` gets
    every step that was made.
    """
    if not deadline_ms > 0:
        return deadline_exceeded(deadline_ms)
    started = clock.mono_ms()

    def is_late() -> bool:
        return clock.mono_ms() - started >= deadline_ms

    try:
        decision = _Adjudication(envelope, state, policy, steps, is_late).decide(kill)
    except _Late:
        return deadline_exceeded(deadline_ms)
    return deadline_exceeded(deadline_ms) if is_late() else decision


def taint_refusal(envelope: IntentEnvelope, policy: PolicyBundle) -> Refuse | None:
    """Returns the refusal of the taint gate alone, for an envelope that `adjudicate` let pass."""
    return _Adjudication(envelope, None, policy).only_taint()


class _Late(Exception):
    """The deadline passed between two guards."""


class _Adjudication:
    """One envelope on its way through the phases."""

    def __init__(
        self,
        envelope: IntentEnvelope,
        state: Any,
        policy: PolicyBundle,
        steps: list[TraceStep] | None = None,
        is_late: Callable[[], bool] | None = None,
    ) -> None:
        self._envelope = envelope
        self._state = state
        self._policy = policy
        self._steps = steps
        self._is_late = is_late
        self._passed: Passed = ()
        self._level = Taint.UNTRUSTED
        self._before = b""

    def decide(self, kill: Kill | None) -> Decision:
        if kill is not None:
            self._step("kill", "match")
            return killed(kill)
        self._step("kill", "pass")
        refusal = self._refused_schema()
        if refusal is not None:
            self._step("schema", "match")
            return refusal
        self._step("schema", "pass")
        decision = (
            self._asked("state", "state_guards")
            or self._asked_taint()
            or self._asked("auth", "auth_guards")
            or self._asked("business", "business")
            or self._default()
        )
        return self._changed() or decision

    def only_taint(self) -> Refuse | None:
        self._level = examine(self._envelope)[1]
        self._passed = (_VERSION_SUPPORTED,)
        return self._taint_refusal()

    def _refused_schema(self) -> Refuse | None:
        envelope: Any = self._envelope
        if type(envelope) is not IntentEnvelope:
            return unsupported_version(f"a {type(envelope).__name__}")
        if type(envelope.version) is not int or envelope.version != ENVELOPE_VERSION:
            return unsupported_version(envelope.version)
        self._passed = (_VERSION_SUPPORTED,)
        try:
            derived, self._level = examine(envelope)
            self._before = _encode(envelope)
        except Exception as error:  # noqa: BLE001 - a forged envelope may hold anything
            return guard_panic(self._passed, "schema", error, None, None)
        if derived != envelope.intent_hash:
            return hash_mismatch(self._passed, envelope.intent_hash, derived)
        return None

    def _asked(self, phase: str, guards_of: str) -> Decision | None:
        try:
            guards = tuple(getattr(self._policy, guards_of))
        except Exception as error:  # noqa: BLE001 - a policy may be anything, as a guard may
            self._step(phase, "match")
            return guard_panic(self._passed, phase, error, None, None)
        for index, guard in enumerate(guards):
            if self._is_late is not None and self._is_late():
                raise _Late
            try:
                returned = guard(self._envelope, self._state)
                if returned is not None:
                    decision = self._accepted(check_decision(returned))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - whatever a guard does, it is refused
                returned = decision = guard_panic(
                    self._passed, phase, error, index, guard_name(guard)
                )
            if returned is not None:
                return self._answered(phase, index, guard, decision)
            if self._steps is not None:
                self._step(phase, "pass", index, guard)
        self._passed = (*self._passed, _PASSED[phase])
        return None

    def _answered(self, phase: str, index: int, guard: Guard, decision: Decision) -> Decision:
        """Returns the decision of a guard, or the taint gate's if the guard is before the gate."""
        if phase == "state" and type(decision) is Execute:
            refusal = self._taint_refusal()
            if refusal is not None:
                self._step(phase, "pass", index, guard)
                self._step("taint", "match")
                return refusal
        self._step(phase, "match", index, guard)
        return decision

    def _accepted(self, decision: Decision) -> Decision:
        if type(decision) is Rewrite:
            refusal = check_rewrite(self._envelope, decision, self._passed)
            if refusal is not None:
                return refusal
        return msgspec.structs.replace(decision, basis=(*self._passed, *decision.basis))

    def _asked_taint(self) -> Refuse | None:
        if self._is_late is not None and self._is_late():
            raise _Late
        refusal = self._taint_refusal()
        self._step("taint", "pass" if refusal is None else "match")
        self._passed = (*self._passed, _PASSED["taint"])
        return refusal

    def _taint_refusal(self) -> Refuse | None:
        envelope = self._envelope
        try:
            taint = self._policy.taint
            is_enough = RANK[self._level] >= RANK[Taint(taint.minimum_for(envelope.kind))]
            demands: Any = getattr(taint, "requires_uncontaminated", None)
            is_foreign = demands is not None and is_contaminating(envelope.origin)
            is_refused = bool(is_foreign and demands(envelope.kind))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a taint policy is a guard, too
            return guard_panic(self._passed, "taint", error, None, None)
        if not is_enough:
            return insufficient_taint(self._passed, self._level, envelope.kind)
        if is_refused:
            return propagation_violation(
                self._passed,
                f"content of origin {envelope.origin} may not propose this",
                origin=str(envelope.origin),
                kind=envelope.kind,
            )
        return None

    def _default(self) -> Decision:
        self._step("default", "match")
        default: Any = getattr(self._policy, "default", None)
        if type(default) is str and default == "EXECUTE":
            return Execute(self._passed)
        return default_deny(self._passed)

    def _changed(self) -> Refuse | None:
        """Returns a refusal if a guard changed the envelope: the others judged something else."""
        try:
            if _encode(self._envelope) == self._before:
                return None
        except Exception:  # noqa: BLE001 - so it has values that it did not have before
            pass
        error = NotADecision("a guard changed the envelope")
        return guard_panic((_VERSION_SUPPORTED,), "schema", error, None, None)

    def _step(
        self, phase: str, outcome: str, index: int | None = None, guard: Guard | None = None
    ) -> None:
        if self._steps is not None:
            self._steps.append(TraceStep(phase, outcome, index, guard_name(guard)))
