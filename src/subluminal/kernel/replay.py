"""Replay: a decision on record against the same question asked again."""

from enum import StrEnum

from msgspec import Struct

from subluminal.kernel.audit import AuditRecord, verify_audit_record
from subluminal.kernel.basis import flat_basis
from subluminal.kernel.decisions import Decision, Refuse


class ReplayMismatchKind(StrEnum):
    """How two decisions differ; there are no other ways."""

    DECISION_KIND = "DECISION_KIND"
    BASIS_DRIFT = "BASIS_DRIFT"
    REFUSAL_CODE_DRIFT = "REFUSAL_CODE_DRIFT"


class ReplayVerdict(StrEnum):
    """Whether a policy still decides as it did."""

    IDENTICAL = "IDENTICAL"
    BASIS_ONLY = "BASIS_ONLY"
    """the same decision, with other reasons"""
    DECISION_CHANGED = "DECISION_CHANGED"


class IntegrityFailure(StrEnum):
    """Why a record cannot be replayed: it is not as it was written."""

    AUDIT_HASH_TAMPERED = "AUDIT_HASH_TAMPERED"
    INTENT_HASH_MISMATCH = "INTENT_HASH_MISMATCH"


class ReplayMismatch(Struct, frozen=True):
    """How two decisions differ. Reasons are `category:code`, sorted."""

    kind: ReplayMismatchKind
    missing: tuple[str, ...] = ()
    """reasons of the record that are not there any more"""
    extra: tuple[str, ...] = ()


def classify(expected: Decision, actual: Decision) -> ReplayMismatch | None:
    """Compares two decisions by kind, set of reasons and refusal code. Details do not count."""
    if expected.kind is not actual.kind:
        return ReplayMismatch(ReplayMismatchKind.DECISION_KIND)
    before, after = set(flat_basis(expected.basis)), set(flat_basis(actual.basis))
    if before != after:
        missing, extra = tuple(sorted(before - after)), tuple(sorted(after - before))
        return ReplayMismatch(ReplayMismatchKind.BASIS_DRIFT, missing, extra)
    if _code(expected) != _code(actual):
        return ReplayMismatch(ReplayMismatchKind.REFUSAL_CODE_DRIFT)
    return None


def _code(decision: Decision) -> str | None:
    return decision.refusal.code if isinstance(decision, Refuse) else None


def replay_verdict(expected: Decision, actual: Decision) -> ReplayVerdict:
    """Returns whether the decision is the same. Another refusal code is another reason."""
    mismatch = classify(expected, actual)
    if mismatch is None:
        return ReplayVerdict.IDENTICAL
    if mismatch.kind is ReplayMismatchKind.DECISION_KIND:
        return ReplayVerdict.DECISION_CHANGED
    return ReplayVerdict.BASIS_ONLY


def integrity_failure(record: AuditRecord) -> IntegrityFailure | None:
    """Returns why a record must not be replayed; None if nothing speaks against it."""
    match verify_audit_record(record).reason:
        case "tampered":
            return IntegrityFailure.AUDIT_HASH_TAMPERED
        case "envelope_intent_mismatch":
            return IntegrityFailure.INTENT_HASH_MISMATCH
    return None
