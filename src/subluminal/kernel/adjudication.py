"""`adjudicate`: an envelope, the state and a policy give one decision. Pure and total.

The order is fixed: kill switch, version, hash, state guards, taint gate, auth guards, business
guards, default. The first opinion counts. What was passed on the way stands before the reasons of
the decision. Nothing that a guard does gets out: an exception, a value that is not a decision and a
changed envelope all become a refusal `guard_panic`. Only what is not an Exception passes: a person
who interrupts and a process that is told to exit must get their way. Then there is no decision.

An EXECUTE of a state guard still has to pass the taint gate, which comes later in the order:
otherwise UNTRUSTED would execute where the policy demands more.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from subluminal.contracts.vocabulary import Taint
from subluminal.kernel.basis import basis
from subluminal.kernel.decisions import Decision, Execute, Refuse, Rewrite
from subluminal.kernel.envelope import (
    ENVELOPE_VERSION,
    IntentEnvelope,
    derive_intent_hash,
    examine,
    has_bytes,
)
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

_IsLate = Callable[[], bool]
_UNTRUSTED = Taint.UNTRUSTED
_GUARDS: dict[str, Callable[[Any], Iterable[Guard]]] = {
    "state": attrgetter("state_guards"),
    "auth": attrgetter("auth_guards"),
    "business": attrgetter("business"),
}
_ALL_PASSED = (
    basis("schema", "version_supported"),
    basis("state", "transition_valid"),
    basis("taint", "level_permitted"),
    basis("auth", "scope_sufficient"),
    basis("business", "rule_satisfied"),
)
_PASSED: dict[str, Passed] = {
    "schema": _ALL_PASSED[:1],
    "state": _ALL_PASSED[:1],
    "taint": _ALL_PASSED[:2],
    "auth": _ALL_PASSED[:3],
    "business": _ALL_PASSED[:4],
}
"""What has passed when a phase begins. The version passes first, then the hash is looked at."""


class TraceStep(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One step of an adjudication. The last one is the match; all others passed."""

    phase: str
    """kill, schema, state, taint, auth, business or default"""
    outcome: str
    """pass or match"""
    index: int | None = None
    """which guard of the phase, from 0"""
    guard_name: str | None = None


_Steps = list[TraceStep]


def adjudicate(
    envelope: IntentEnvelope, state: Any, policy: PolicyBundle, *, kill: Kill | None = None
) -> Decision:
    """Decides about one intent. Equal arguments give equal decisions, and nothing is raised."""
    return _decided(envelope, state, policy, kill, None, None)


def adjudicate_with_trace(
    envelope: IntentEnvelope, state: Any, policy: PolicyBundle, *, kill: Kill | None = None
) -> tuple[Decision, list[TraceStep]]:
    """`adjudicate`, and every step on the way."""
    steps: _Steps = []
    return _decided(envelope, state, policy, kill, steps, None), steps


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
        decision = _decided(envelope, state, policy, kill, steps, is_late)
    except _Late:
        return deadline_exceeded(deadline_ms)
    return deadline_exceeded(deadline_ms) if is_late() else decision


def taint_refusal(envelope: IntentEnvelope, policy: PolicyBundle) -> Refuse | None:
    """Returns the refusal of the taint gate alone, for an envelope that `adjudicate` let pass."""
    return _taint_refusal(envelope, policy, examine(envelope)[1], _PASSED["state"])


def changed_since_hashed(envelope: IntentEnvelope) -> Refuse | None:
    """Returns a refusal if an envelope that `adjudicate` let pass lost its hash since then."""
    try:
        if derive_intent_hash(envelope) == envelope.intent_hash:
            return None
    except Exception:  # noqa: BLE001 - so it has values that it did not have before
        pass
    return _changed_panic("the envelope was changed after it was judged")


class _Late(BaseException):
    """The deadline passed between two guards. Not an Exception, so not taken for a guard's."""


def _decided(
    envelope: IntentEnvelope,
    state: Any,
    policy: PolicyBundle,
    kill: Kill | None,
    steps: _Steps | None,
    is_late: _IsLate | None,
) -> Decision:
    """Asks the phases in their order. A step is made only if somebody wants a trace."""
    if kill is not None:
        _add_step(steps, "kill", "match")
        return killed(kill)
    _add_step(steps, "kill", "pass")
    examined = _examined(envelope)
    if not isinstance(examined, tuple):
        _add_step(steps, "schema", "match")
        return examined
    _add_step(steps, "schema", "pass")
    before, level = examined
    decision = _first_opinion("state", envelope, state, policy, steps, is_late)
    if decision is None:
        decision = (
            _gate(envelope, policy, level, steps, is_late)
            or _first_opinion("auth", envelope, state, policy, steps, is_late)
            or _first_opinion("business", envelope, state, policy, steps, is_late)
            or _default(policy, steps)
        )
    elif type(decision) is Execute:
        decision = _early_gate(envelope, policy, level, steps) or decision
    return _changed(envelope, before) or decision


def _examined(envelope: Any) -> tuple[bytes, Taint] | Refuse:
    """Returns the bytes that were hashed and the level of an envelope, if it has its hash."""
    if type(envelope) is not IntentEnvelope:
        return unsupported_version(f"a {type(envelope).__name__}")
    if type(envelope.version) is not int or envelope.version != ENVELOPE_VERSION:
        return unsupported_version(envelope.version)
    try:
        examined = examine(envelope)
    except Exception as error:  # noqa: BLE001 - a forged envelope may hold anything
        return guard_panic(_PASSED["schema"], "schema", error, None, None)
    derived = sha256(examined[0]).hexdigest()
    if derived != envelope.intent_hash:
        return hash_mismatch(_PASSED["schema"], envelope.intent_hash, derived)
    return examined


def _first_opinion(
    phase: str,
    envelope: IntentEnvelope,
    state: Any,
    policy: PolicyBundle,
    steps: _Steps | None,
    is_late: _IsLate | None,
) -> Decision | None:
    """Asks the guards of a phase until one has an opinion."""
    guards: tuple[Guard, ...] = ()
    asked, decision = 0, None
    try:
        guards = tuple(_GUARDS[phase](policy))
        for guard in guards if is_late is None else _in_time(guards, is_late):
            asked += 1
            returned = guard(envelope, state)
            if returned is not None:
                decision = _accepted(envelope, returned, _PASSED[phase])
                break
    except Exception as error:  # noqa: BLE001 - whatever a guard does, it is refused
        index, name = (asked - 1, guard_name(guards[asked - 1])) if asked else (None, None)
        decision = guard_panic(_PASSED[phase], phase, error, index, name)
    if steps is not None:
        _add_guards(steps, phase, guards[:asked], decision)
    return decision


def _in_time(guards: tuple[Guard, ...], is_late: _IsLate) -> Iterator[Guard]:
    for guard in guards:
        if is_late():
            raise _Late
        yield guard


def _accepted(envelope: IntentEnvelope, returned: Any, passed: Passed) -> Decision:
    """Returns what a guard said with its whole basis. Raises if it is not a decision."""
    decision = check_decision(returned)
    if type(decision) is Execute:
        return Execute((*passed, *decision.basis))
    if type(decision) is Rewrite:
        refusal = check_rewrite(envelope, decision, passed)
        if refusal is not None:
            return refusal
    return msgspec.structs.replace(decision, basis=(*passed, *decision.basis))


def _gate(
    envelope: IntentEnvelope,
    policy: PolicyBundle,
    level: Taint,
    steps: _Steps | None,
    is_late: _IsLate | None,
) -> Refuse | None:
    if is_late is not None and is_late():
        raise _Late
    refusal = _taint_refusal(envelope, policy, level, _PASSED["taint"])
    _add_step(steps, "taint", "pass" if refusal is None else "match")
    return refusal


def _early_gate(
    envelope: IntentEnvelope, policy: PolicyBundle, level: Taint, steps: _Steps | None
) -> Refuse | None:
    """The taint gate for an EXECUTE of a state guard, which was asked before the gate."""
    refusal = _taint_refusal(envelope, policy, level, _PASSED["state"])
    if refusal is not None and steps is not None:
        steps[-1] = msgspec.structs.replace(steps[-1], outcome="pass")
        _add_step(steps, "taint", "match")
    return refusal


def _taint_refusal(
    envelope: IntentEnvelope, policy: PolicyBundle, level: Taint, passed: Passed
) -> Refuse | None:
    try:
        taint = policy.taint
        least = taint.minimum_for(envelope.kind)
        is_enough = least is _UNTRUSTED or RANK[level] >= RANK[Taint(least)]
        demands: Any = getattr(taint, "requires_uncontaminated", None)
        is_foreign = demands is not None and is_contaminating(envelope.origin)
        is_refused = bool(is_foreign and demands(envelope.kind))
    except Exception as error:  # noqa: BLE001 - a taint policy is a guard, too
        return guard_panic(passed, "taint", error, None, None)
    if not is_enough:
        return insufficient_taint(passed, level, envelope.kind)
    if is_refused:
        return propagation_violation(
            passed,
            f"content of origin {envelope.origin} may not propose this",
            origin=str(envelope.origin),
            kind=envelope.kind,
        )
    return None


def _default(policy: PolicyBundle, steps: _Steps | None) -> Decision:
    _add_step(steps, "default", "match")
    default: Any = getattr(policy, "default", None)
    if type(default) is str and default == "EXECUTE":
        return Execute(_ALL_PASSED)
    return default_deny(_ALL_PASSED)


def _changed(envelope: IntentEnvelope, before: bytes) -> Refuse | None:
    """Returns a refusal if the envelope lost its hash: a guard changed it, others judged it."""
    try:
        if has_bytes(envelope, before):
            return None
    except Exception:  # noqa: BLE001 - so it has values that it did not have before
        pass
    return _changed_panic("a guard changed the envelope")


def _changed_panic(words: str) -> Refuse:
    return guard_panic(_PASSED["schema"], "schema", NotADecision(words), None, None)


def _add_step(steps: _Steps | None, phase: str, outcome: str) -> None:
    if steps is not None:
        steps.append(TraceStep(phase, outcome))


def _add_guards(
    steps: _Steps, phase: str, asked: tuple[Guard, ...], decision: Decision | None
) -> None:
    """Adds the guards that were asked. If there is a decision, it is the last one's."""
    for index, guard in enumerate(asked):
        is_match = decision is not None and index == len(asked) - 1
        name = guard_name(guard)
        steps.append(TraceStep(phase, "match" if is_match else "pass", index, name))
    if decision is not None and not asked:
        _add_step(steps, phase, "match")
