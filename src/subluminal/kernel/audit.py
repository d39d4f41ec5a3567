"""Audit records, versions 1 to 5: what was decided about which envelope, with a hash over both.

A record holds the envelope and the decision as JSON has them, so that a record of another program
keeps every member that its hash covers. We write version 5 and read all five:

1  envelope, decision, reasons, time    2  and the plan    3  and what it supersedes
4  and versions, a hash and a signature    5  and metadata, which the hash does not cover
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from subluminal.canonical import parse
from subluminal.errors import SubluminalError
from subluminal.kernel.decisions import Decision
from subluminal.kernel.envelope import (
    ENVELOPE_VERSION,
    IntentEnvelope,
    derive_intent_hash,
    read_envelope,
)
from subluminal.kernel.plain import members_of, plain_json, sha256_canonical
from subluminal.kernel.planning import Plan, plan_fingerprint
from subluminal.kernel.refusals import kind_of, stated

AUDIT_RECORD_VERSION = 5
SUPERSEDE_REASONS = frozenset(
    {"confirmation_resolved", "defer_resumed", "rewrite_executed", "replay", "lgpd_scrub"}
)
_NOT_HASHED = ("auditHash", "signature", "metadata")


class Supersedes(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The record that this one follows, and why."""

    predecessor_intent_hash: str
    predecessor_at: str
    reason: str
    token: str | None = None


class AuditRecord(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """One decision on record."""

    version: int
    intent_hash: str
    envelope: dict[str, Any]
    decision: dict[str, Any]
    decision_basis: list[Any] = field(name="decision_basis")
    at: str
    duration_ms: float
    resource_version: str | None = None
    plan: dict[str, Any] | None = None
    """from version 2"""
    supersedes: dict[str, Any] | None = None
    """from version 3"""
    kernel_identity: dict[str, Any] | None = None
    """from version 3: id and version of the program that decided"""
    policy_version: str | None = None
    """from version 4"""
    kernel_version: str | None = None
    audit_hash: str | None = None
    signature: dict[str, Any] | None = None
    """keyId, alg and value; over `audit_hash`"""
    metadata: dict[str, Any] | None = None
    """from version 5: what is added afterwards"""


class Verification(Struct, frozen=True, omit_defaults=True):
    """Whether a record is as it was written: True, False, or None if that cannot be told."""

    verified: bool | None
    reason: str | None = None
    """tampered, envelope_intent_mismatch, missing_hash or redacted"""


def build_audit_record(
    *,
    envelope: IntentEnvelope | Mapping[str, Any],
    decision: Decision,
    at: str,
    duration_ms: float,
    plan: Plan | None = None,
    resource_version: str | None = None,
    supersedes: Supersedes | None = None,
    kernel_identity: Mapping[str, str] | None = None,
    policy_version: str | None = None,
    kernel_version: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> AuditRecord:
    """Makes a record of version 5 with its hash. Takes an envelope, or its JSON (`wire_of`)."""
    if supersedes is not None and supersedes.reason not in SUPERSEDE_REASONS:
        raise SubluminalError(f"`{supersedes.reason}` is not a reason to supersede a record")
    wire = envelope if isinstance(envelope, Mapping) else wire_of(envelope)
    said = plain_json(decision)
    record = AuditRecord(
        version=AUDIT_RECORD_VERSION,
        intent_hash=wire.get("intentHash", ""),
        envelope=dict(wire),
        decision=said,
        decision_basis=plain_json(said["basis"]),
        at=at,
        duration_ms=duration_ms,
        resource_version=resource_version,
        plan=None if plan is None else _snapshot(plan),
        supersedes=None if supersedes is None else plain_json(supersedes),
        kernel_identity=None if kernel_identity is None else dict(kernel_identity),
        policy_version=policy_version,
        kernel_version=kernel_version,
        metadata=None if metadata is None else plain_json(metadata),
    )
    return msgspec.structs.replace(record, audit_hash=derive_audit_hash(record))


def wire_of(envelope: IntentEnvelope) -> dict[str, Any]:
    """Returns an envelope as JSON. Of one that JSON cannot hold, only kind and stated hash."""
    try:
        derive_intent_hash(envelope)
        wire: dict[str, Any] = plain_json(envelope)
    except SubluminalError:
        return {
            "kind": kind_of(envelope),
            "payload": None,
            "intentHash": stated(envelope, "intent_hash"),
        }
    return wire


def _snapshot(plan: Plan) -> dict[str, Any]:
    return {
        "visibleReadTools": list(plan.visible_read_tools),
        "allowedIntents": list(plan.allowed_intents),
        "planFingerprint": plan_fingerprint(plan),
    }


def derive_audit_hash(record: AuditRecord) -> str:
    """Returns the hash over a record: everything but the hash, the signature and the metadata."""
    wire = members_of(record)
    return sha256_canonical({name: wire[name] for name in wire if name not in _NOT_HASHED})


def decode_audit_record(text: bytes | str) -> AuditRecord:
    """Reads a record of any version. Raises SubluminalError if the text is not one."""
    encoded = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    value = parse(encoded).value
    try:
        record = msgspec.convert(plain_json(value), AuditRecord)
    except msgspec.ValidationError as error:
        raise SubluminalError(f"not an audit record: {error}") from None
    if not 1 <= record.version <= AUDIT_RECORD_VERSION:
        raise SubluminalError(f"audit record version {record.version} is not supported")
    return record


def verify_audit_record(record: AuditRecord) -> Verification:
    """Derives both hashes again. The envelope comes first: it is what was decided about."""
    if (record.metadata or {}).get("redacted"):
        return Verification(None, "redacted")
    if record.envelope.get("version") == ENVELOPE_VERSION and not _is_envelope_right(record):
        return Verification(False, "envelope_intent_mismatch")
    if record.audit_hash is None:
        return Verification(None, "missing_hash")
    if not _is_hash_right(record):
        return Verification(False, "tampered")
    return Verification(True)


def _is_hash_right(record: AuditRecord) -> bool:
    try:
        return derive_audit_hash(record) == record.audit_hash
    except SubluminalError:  # numbers that no runtime could have hashed
        return False


def _is_envelope_right(record: AuditRecord) -> bool:
    try:
        envelope = read_envelope(record.envelope)
        return derive_intent_hash(envelope) == envelope.intent_hash == record.intent_hash
    except SubluminalError:
        return False


def replay_envelope_from_audit(record: AuditRecord) -> IntentEnvelope:
    """Returns the envelope of a record, to be decided about again.

    The nonce is the stored one; an envelope of version 1 had none, so there it is `createdAt`.
    Raises SubluminalError if an envelope of version 2 does not have its hash.
    """
    if record.envelope.get("version") == ENVELOPE_VERSION:
        if not _is_envelope_right(record):
            raise SubluminalError("the envelope on record does not have the hash on record")
        return read_envelope(record.envelope)
    nonce = record.envelope.get("nonce") or record.envelope.get("createdAt")
    blank = {**record.envelope, "version": ENVELOPE_VERSION, "nonce": nonce, "intentHash": ""}
    envelope = read_envelope(blank)
    return msgspec.structs.replace(envelope, intent_hash=derive_intent_hash(envelope))


def decision_from_audit(record: AuditRecord) -> Decision:
    """Returns the decision of a record. Raises SubluminalError if it is not one of the six."""
    try:
        decision: Decision = msgspec.convert(record.decision, Decision)
    except msgspec.ValidationError as error:
        raise SubluminalError(f"not a decision: {error}") from None
    return decision
