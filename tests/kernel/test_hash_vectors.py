"""The public project's hash vectors: our hashes are those of every other runtime."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernel.making import AT
from tests.requirements import requirement

from subluminal.kernel import (
    AuditRecord,
    IntentActor,
    build_envelope,
    decode_audit_record,
    sha256_canonical,
    verify_audit_record,
)

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("vectors.json").read_text("utf-8"))


def input_of(vector: dict[str, Any]) -> dict[str, Any]:
    given = dict(vector["input"])
    if vector["label"] == "large-array":
        given["payload"] = {"items": [{"id": n, "ok": n % 2 == 0} for n in range(32)]}
    return given


@requirement("003:intent-hash")
@pytest.mark.parametrize("vector", VECTORS["envelopes"], ids=lambda vector: vector["label"])
def test_an_envelope_has_the_published_hash(vector: dict[str, Any]) -> None:
    given = input_of(vector)
    actor = given["actor"]
    built = build_envelope(
        given["kind"],
        given["payload"],
        actor=IntentActor(actor["principal"], actor["sessionId"]),
        taint=given["taint"],
        nonce=given["nonce"],
        created_at=AT,
    )
    assert built.intent_hash == vector["hash"] == sha256_canonical(given)


@requirement("003:audit-record")
@pytest.mark.parametrize("vector", VECTORS["audit_records"], ids=lambda vector: vector["label"])
def test_an_audit_record_has_the_published_hash(vector: dict[str, Any]) -> None:
    record = {
        "version": 4,
        "intentHash": VECTORS["audited_envelope"]["intentHash"],
        "envelope": VECTORS["audited_envelope"],
        "decision": vector["decision"],
        "decision_basis": vector["decision"]["basis"],
        "at": AT,
        "durationMs": 5,
        "policyVersion": "1.0.0",
        "kernelVersion": "1.0.0",
        "auditHash": vector["hash"],
    }
    read: AuditRecord = decode_audit_record(json.dumps(record))
    assert verify_audit_record(read).verified is True
