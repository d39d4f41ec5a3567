"""The kernel's six decisions in the terms of Contract C.

EXECUTE objects to nothing. What a person can answer becomes a refusal that waits for approval; the
grant is the person's confirmation. A REWRITE is offered and never applied: a door that may apply it
adjudicates the rewritten intent, and brings that decision here.
"""

from typing import Any, NamedTuple

from msgspec import UNSET

from subluminal.contracts.decision import Decision, Deferral, Hint
from subluminal.contracts.intents import Judgement, KernelDecision
from subluminal.contracts.vocabulary import (
    Action,
    HintKind,
    ReasonCode,
    Requirement,
    Severity,
    Taint,
)
from subluminal.kernel.decisions import Decision as Verdict
from subluminal.kernel.decisions import (
    Defer,
    Escalate,
    Refuse,
    RequestConfirmation,
    Rewrite,
)
from subluminal.policy.refusing import blocked

TIME_SIGNAL = "time"
"""A DEFER for this signal waits for nothing but time."""

_KILLED = "kill_switch_active"
_REPLAYED = "ledger_replay_suppressed"
_EARLIER = {
    "done": "this very intent was executed before",
    "claimed": "this very intent is being executed now",
    "unknown": "an earlier attempt at this very intent ended half way, and nobody knows whether it "
    "was executed: a person must look",
}
_NOT_UNCHANGED = "do not retry this call unchanged"
_ASKED = (
    "a person has been asked: tell your user, go on with other work, and retry the same call with"
    " the same arguments once it is approved"
)


class AskedPack(NamedTuple):
    """The pack that decided, by the names that are on record."""

    name: str
    version: str
    fingerprint: str


class Adjudged(NamedTuple):
    """A decision of the kernel, and what the record says about the intent."""

    verdict: Verdict
    intent_kind: str
    intent_hash: str
    taint: Taint
    guard: str | None = None
    divergence: str | None = None


def judgement(
    pack: AskedPack, found: Adjudged, suggested_args: dict[str, Any] | None = None
) -> Judgement:
    """Puts a decision into the terms of Contract C.

    `suggested_args` are the arguments of a REWRITE, if they would pass.
    """
    verdict = found.verdict
    refusal, requirement = refusal_in_contract(pack, verdict, suggested_args)
    return Judgement(
        refusal=refusal,
        requirement=requirement,
        kernel=KernelDecision(
            pack=pack.name,
            version=pack.version,
            fingerprint=pack.fingerprint,
            intent_kind=found.intent_kind,
            intent_hash=found.intent_hash,
            kind=verdict.kind,
            basis=[f"{each.category}:{each.code}" for each in verdict.basis],
            refusal_code=verdict.refusal.code if isinstance(verdict, Refuse) else UNSET,
            guard=UNSET if found.guard is None else found.guard,
            taint=found.taint,
            divergence=UNSET if found.divergence is None else found.divergence,
        ),
    )


def refusal_in_contract(
    pack: AskedPack, verdict: Verdict, suggested_args: dict[str, Any] | None = None
) -> tuple[Decision | None, Requirement | None]:
    """Returns the refusal that a decision is, and what a person can do about it."""
    return _refusal(pack, verdict, suggested_args), _REQUIREMENTS.get(type(verdict))


_REQUIREMENTS: dict[type, Requirement] = {
    Escalate: Requirement.HUMAN,
    RequestConfirmation: Requirement.CONFIRMATION,
}


def _refusal(
    pack: AskedPack, verdict: Verdict, suggested_args: dict[str, Any] | None
) -> Decision | None:
    match verdict:
        case Refuse():
            return _refused(pack, verdict)
        case Escalate():
            summary = f"the pack {pack.name} leaves this to a {verdict.to}: {verdict.reason}"
            return _asks(ReasonCode.HUMAN_REQUIRED, summary)
        case RequestConfirmation():
            summary = f"a person must confirm this call: {verdict.prompt}"
            return _asks(ReasonCode.CONFIRMATION_REQUIRED, summary)
        case Defer():
            return _deferred(pack, verdict)
        case Rewrite():
            return _offered(pack, verdict, suggested_args)
    return None


def _refused(pack: AskedPack, verdict: Refuse) -> Decision:
    refusal = verdict.refusal
    if refusal.code == _KILLED:
        return blocked(ReasonCode.KILL_SWITCH, refusal.detail or refusal.user_facing)
    said = _suppressed(verdict) if refusal.code == _REPLAYED else refusal.user_facing
    return Decision(
        action=Action.BLOCK,
        rule_id=None,
        severity=Severity.CRITICAL if refusal.kind == "SECURITY" else Severity.WARN,
        reason_code=refusal.code,
        summary=f"the pack {pack.name} refuses this call: {said}",
        hint=Hint(hint_text=said, retry_advice=_NOT_UNCHANGED),
    )


def _suppressed(verdict: Refuse) -> str:
    """Returns why an intent does not run again: it ran, it runs, or nobody knows."""
    detail = next((each.detail for each in verdict.basis if each.detail), None) or {}
    return _EARLIER.get(str(detail.get("status")), verdict.refusal.user_facing)


def _asks(reason_code: ReasonCode, summary: str) -> Decision:
    return Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id=None,
        severity=Severity.WARN,
        reason_code=reason_code,
        summary=summary,
        # Never say how to approve: agents have shells (local-is-not-trusted).
        hint=Hint(hint_text=summary, retry_advice=_ASKED, hint_kind=HintKind.SAFETY),
    )


def _deferred(pack: AskedPack, verdict: Defer) -> Decision:
    if verdict.signal == TIME_SIGNAL:
        return Decision(
            action=Action.THROTTLE,
            rule_id=None,
            severity=Severity.INFO,
            reason_code=ReasonCode.DEFERRED,
            summary=f"the pack {pack.name} lets this call pass later",
            backoff_ms=verdict.timeout_ms,
        )
    summary = f"the pack {pack.name} waits for the signal `{verdict.signal}`"
    return Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id=None,
        severity=Severity.INFO,
        reason_code=ReasonCode.SIGNAL_REQUIRED,
        summary=summary,
        hint=Hint(
            hint_text=summary,
            retry_advice="go on with other work, and retry the same call after the signal",
        ),
        defer=Deferral(signal=verdict.signal, timeout_ms=verdict.timeout_ms),
    )


def _offered(pack: AskedPack, verdict: Rewrite, suggested_args: dict[str, Any] | None) -> Decision:
    advice = _NOT_UNCHANGED if suggested_args is None else "retry with the suggested arguments"
    return Decision(
        action=Action.REJECT_WITH_HINT,
        rule_id=None,
        severity=Severity.WARN,
        reason_code=ReasonCode.REWRITE_OFFERED,
        summary=f"the pack {pack.name} would change this call: {verdict.reason}",
        hint=Hint(
            hint_text=verdict.reason,
            suggested_args=suggested_args,
            retry_advice=advice,
            hint_kind=HintKind.ARG_FIX,
        ),
    )
