"""The refusals that the kernel itself makes, with their words and reasons."""

from typing import Any

from msgspec import Struct

from subluminal.contracts.vocabulary import Taint
from subluminal.kernel.basis import Basis, basis
from subluminal.kernel.decisions import RefusalKind, Refuse, refuse
from subluminal.kernel.envelope import ENVELOPE_VERSION, IntentEnvelope

_UNAVAILABLE = "This action is temporarily unavailable."
_NOT_PROCESSED = "This action could not be processed."
_LONGEST = 500
"""Longest text of others in a reason, such as the message of an exception."""

Passed = tuple[Basis, ...]


class Kill(Struct, frozen=True, rename="camel"):
    """The kill switch, pulled: everything is refused while there is one."""

    reason: str
    toggled_at: str


def killed(kill: Kill, *, tenant: str | None = None) -> Refuse:
    """Everything is refused, before anything else is looked at."""
    reason, toggled_at = getattr(kill, "reason", ""), getattr(kill, "toggled_at", "")
    detail = {"reason": told(reason), "toggledAt": told(toggled_at)}
    if tenant is not None:
        detail["tenant"] = told(tenant)
    words = f"the kill switch is on since {detail['toggledAt']}: {detail['reason']}"
    refusal = refuse(RefusalKind.SECURITY, "kill_switch_active", _UNAVAILABLE, words)
    return Refuse(refusal, (basis("kill", "active", **detail),))


def unsupported_version(seen: Any) -> Refuse:
    """The envelope is of another version, or is not an envelope."""
    shown = seen if type(seen) is int and abs(seen) < 2**53 else told(seen)
    refusal = refuse(
        RefusalKind.SECURITY,
        "schema_version_unsupported",
        _NOT_PROCESSED,
        f"envelope version {shown} is not {ENVELOPE_VERSION}",
    )
    reason = basis("schema", "version_unsupported", seen=shown, supported=ENVELOPE_VERSION)
    return Refuse(refusal, (reason,))


def hash_mismatch(passed: Passed, stated: str, derived: str) -> Refuse:
    """The envelope does not have the hash that its members give."""
    refusal = refuse(
        RefusalKind.SECURITY,
        "intent_hash_mismatch",
        _NOT_PROCESSED,
        "the envelope was changed after its hash was made",
    )
    reason = basis("schema", "intent_hash_mismatch", stated=told(stated), derived=derived)
    return Refuse(refusal, (*passed, reason))


def insufficient_taint(passed: Passed, actual: Taint, kind: str) -> Refuse:
    """The payload is less trusted than this kind of intent demands."""
    refusal = refuse(
        RefusalKind.SECURITY,
        "taint_level_insufficient",
        "This action needs more trustworthy information.",
        f"{actual} may not propose `{told(kind)}`",
    )
    return Refuse(
        refusal, (*passed, basis("taint", "level_insufficient", actual=actual, kind=kind))
    )


def propagation_violation(passed: Passed, why: str, **detail: Any) -> Refuse:
    """Content of others would act, or its level would be raised on the way."""
    refusal = refuse(
        RefusalKind.SECURITY,
        "taint_level_insufficient",
        "This action needs more trustworthy information.",
        why,
    )
    return Refuse(refusal, (*passed, basis("taint", "propagation_violation", **detail)))


def default_deny(passed: Passed) -> Refuse:
    """No guard had an opinion, and the policy's default is to refuse."""
    refusal = refuse(
        RefusalKind.BUSINESS_RULE, "default_deny", "This action is not allowed at the moment."
    )
    return Refuse(refusal, passed)


def deadline_exceeded(deadline_ms: float) -> Refuse:
    """The decision took longer than its caller allowed."""
    refusal = refuse(
        RefusalKind.SECURITY,
        "kernel_deadline_exceeded",
        _UNAVAILABLE,
        f"no decision within {deadline_ms} ms",
    )
    return Refuse(refusal, (basis("deadline", "exceeded", deadlineMs=deadline_ms),))


def replay_suppressed(intent_hash: str, **previous: Any) -> Refuse:
    """The intent was executed before, or is being executed."""
    refusal = refuse(
        RefusalKind.STATE,
        "ledger_replay_suppressed",
        "This action was already processed.",
        f"{intent_hash} was claimed at {previous['previousAt']}",
    )
    return Refuse(refusal, (basis("ledger", "replay_suppressed", **previous),))


def guard_panic(
    passed: Passed, phase: str, error: BaseException, index: int | None, name: str | None
) -> Refuse:
    """A guard raised, or returned what is not a decision."""
    detail: dict[str, Any] = {"phase": phase}
    if index is not None:
        detail["index"] = index
    if name is not None:
        detail["guardName"] = told(name)
    detail |= {"errorName": told(type(error).__name__), "message": told(error)}
    place = detail.get("guardName", phase if index is None else f"{phase}[{index}]")
    words = f"{place}: {detail['errorName']}: {detail['message']}"
    refusal = refuse(RefusalKind.SECURITY, "guard_panic", _UNAVAILABLE, words)
    return Refuse(refusal, (*passed, basis("kernel", "guard_panic", **detail)))


def told(value: Any) -> str:
    """Returns the text of a value of others: bounded, and such that JSON can hold it."""
    try:
        text = str(value)
    except Exception as error:  # noqa: BLE001 - it may fail to describe itself
        text = f"({type(value).__name__} that has no text: {type(error).__name__})"
    cut = text[:_LONGEST]
    return cut.encode("utf-8", "backslashreplace").decode()


def kind_of(envelope: Any) -> str:
    """Returns the kind of an envelope that may be forged."""
    return stated(envelope, "kind")


def stated(envelope: Any, member: str) -> str:
    """Returns a member of an envelope that may be forged; "" if it is not an envelope."""
    return told(getattr(envelope, member)) if type(envelope) is IntentEnvelope else ""
