"""What a pack said about a recorded call of the in-process door.

The pack's answer depends on a state that policies do not see, so a replay of policies does not ask
the pack again: its answer stands as it is on record (`sub pack replay` asks packs again).
"""

from typing import NamedTuple

from msgspec import UNSET

from subluminal.contracts.decision import Decision, Hint, PolicyRef
from subluminal.contracts.events import DecisionMade
from subluminal.contracts.intents import Judgement, KernelDecision
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, Requirement, Severity

_PREFIX = "pack:"
_EXECUTE = "EXECUTE"
_CONFIRMED = "confirmation:received"
_ASKS = {
    ReasonCode.HUMAN_REQUIRED: Requirement.HUMAN,
    ReasonCode.CONFIRMATION_REQUIRED: Requirement.CONFIRMATION,
}
_REASONS = {
    "ESCALATE": ReasonCode.HUMAN_REQUIRED,
    "REQUEST_CONFIRMATION": ReasonCode.CONFIRMATION_REQUIRED,
    "DEFER": ReasonCode.SIGNAL_REQUIRED,
    "REWRITE": ReasonCode.REWRITE_OFFERED,
}


class RecordedPack(NamedTuple):
    """A pack that was asked about a call, and its answer."""

    ref: PolicyRef
    judgement: Judgement


def recorded_pack(event: DecisionMade) -> RecordedPack | None:
    """Returns the pack that the door asked about a call; None if it asked none."""
    ref = _ref(event)
    if ref is None:
        return None
    kernel = None if event.kernel is UNSET else event.kernel
    refusal = _refusal(event, ref, kernel)
    code = None if refusal is None else refusal.reason_code
    requirement = next((asked for each, asked in _ASKS.items() if each == code), None)
    return RecordedPack(ref, Judgement(refusal=refusal, requirement=requirement, kernel=kernel))


def _ref(event: DecisionMade) -> PolicyRef | None:
    if event.policies is not UNSET:
        return next((each for each in event.policies if each.layer is Layer.PACK), None)
    if event.policy.policy_id.startswith(_PREFIX):
        return event.policy
    kernel = event.kernel
    if kernel is UNSET or event.rule_id is not None or event.policy.policy_id != "none":
        return None  # a rule asked the pack
    return PolicyRef(
        policy_id=f"{_PREFIX}{kernel.pack}",
        policy_version=kernel.version,
        policy_hash=kernel.fingerprint,
    )


def _refusal(event: DecisionMade, ref: PolicyRef, kernel: KernelDecision | None) -> Decision | None:
    if event.action is not Action.ALLOW and event.policy.policy_hash == ref.policy_hash:
        # The pack decided, or the code that it is to replace.
        backoff_ms = None if event.backoff_ms is UNSET else event.backoff_ms
        return _decision(event.action, event.severity, event.explain.reason_code, backoff_ms)
    if kernel is None or kernel.divergence is not UNSET:
        return None
    if kernel.kind == _EXECUTE:
        if _CONFIRMED not in kernel.basis:
            return None
        return _asked(ReasonCode.CONFIRMATION_REQUIRED)
    if kernel.refusal_code is not UNSET:
        return _decision(Action.BLOCK, Severity.WARN, kernel.refusal_code)
    return _asked(_REASONS[kernel.kind])


def _asked(reason_code: str) -> Decision:
    return _decision(Action.REJECT_WITH_HINT, Severity.WARN, reason_code)


def _decision(
    action: Action, severity: Severity, reason_code: str, backoff_ms: int | None = None
) -> Decision:
    """Returns a decision without its words, which replay does not compare."""
    return Decision(
        action=action,
        rule_id=None,
        severity=severity,
        reason_code=reason_code,
        summary="",
        backoff_ms=backoff_ms,
        hint=Hint(hint_text="") if action is Action.REJECT_WITH_HINT else None,
    )
