"""Audit records: versions 1 to 5, hashes, and the way back to an envelope."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.making import AT, envelope, policy
from tests.requirements import requirement

from subluminal.errors import SubluminalError
from subluminal.kernel import (
    AUDIT_RECORD_VERSION,
    AuditRecord,
    IntegrityFailure,
    Plan,
    Rewrite,
    Supersedes,
    adjudicate,
    build_audit_record,
    decision_from_audit,
    decode_audit_record,
    integrity_failure,
    replay_envelope_from_audit,
    sha256_canonical,
    verify_audit_record,
)


def record(**given: Any) -> AuditRecord:
    made = given.pop("envelope", envelope())
    decision = given.pop("decision", adjudicate(made, None, policy()))
    return build_audit_record(envelope=made, decision=decision, at=AT, duration_ms=1.5, **given)


def wire(made: AuditRecord) -> dict[str, Any]:
    read: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return read


@requirement("003:audit-record")
def test_a_record_carries_the_plan_and_its_fingerprint() -> None:
    made = wire(record(plan=Plan(("search",), ("order.submit",), ("secret",))))
    allowed = {"visibleReadTools": ["search"], "allowedIntents": ["order.submit"]}
    assert made["plan"] == allowed | {"planFingerprint": sha256_canonical(allowed)}
    assert made["decision_basis"] == made["decision"]["basis"]
    assert made["envelope"] == msgspec.to_builtins(envelope())


def test_a_record_reads_back_and_verifies() -> None:
    made = record(
        supersedes=Supersedes("0" * 64, AT, "replay"),
        kernel_identity={"id": "subluminal", "version": "1"},
        policy_version="1",
        kernel_version="2",
        resource_version="r",
        metadata={"state_hash": "x"},
    )
    read = decode_audit_record(msgspec.json.encode(made))
    assert read == decode_audit_record(msgspec.json.encode(made).decode()) == made
    assert made.version == AUDIT_RECORD_VERSION == 5
    assert verify_audit_record(read).verified is True
    assert integrity_failure(read) is None


def test_metadata_and_signature_do_not_count() -> None:
    made = record()
    later = msgspec.structs.replace(made, metadata={"score": 1}, signature={"keyId": "k"})
    assert verify_audit_record(later).verified is True


@pytest.mark.parametrize(
    ("changed", "reason", "failure"),
    [
        ({"at": "later"}, "tampered", IntegrityFailure.AUDIT_HASH_TAMPERED),
        ({"decision": {"kind": "EXECUTE", "basis": []}}, "tampered", IntegrityFailure.AUDIT_HASH_TAMPERED),
        ({"intent_hash": "0" * 64}, "envelope_intent_mismatch", IntegrityFailure.INTENT_HASH_MISMATCH),
        ({"envelope": {"version": 2}}, "envelope_intent_mismatch", IntegrityFailure.INTENT_HASH_MISMATCH),
        ({"audit_hash": None}, "missing_hash", None),
        ({"metadata": {"redacted": True}}, "redacted", None),
    ],
)  # fmt: skip
def test_what_was_changed_is_found(changed: Any, reason: str, failure: Any) -> None:
    made = msgspec.structs.replace(record(), **changed)
    found = verify_audit_record(made)
    assert (found.verified, found.reason) == (False if failure else None, reason)
    assert integrity_failure(made) == failure


@requirement("003:replay-from-audit")
def test_the_envelope_of_a_record_has_the_hash_on_record() -> None:
    made = record()
    assert replay_envelope_from_audit(made) == envelope()
    assert decision_from_audit(made) == adjudicate(envelope(), None, policy())
    forged = msgspec.structs.replace(made, envelope=made.envelope | {"payload": {}})
    with pytest.raises(SubluminalError, match="hash on record"):
        replay_envelope_from_audit(forged)
    broken = msgspec.structs.replace(made, decision={"kind": "MAYBE"})
    with pytest.raises(SubluminalError, match="not a decision"):
        decision_from_audit(broken)


@requirement("003:replay-from-audit")
def test_a_record_of_version_1_is_read_and_replayed_by_its_time() -> None:
    old = wire(record())
    old["version"] = old["envelope"]["version"] = 1
    del old["auditHash"], old["envelope"]["nonce"]
    read = decode_audit_record(msgspec.json.encode(old))
    assert verify_audit_record(read).reason == "missing_hash"
    replayed = replay_envelope_from_audit(read)
    assert (replayed.version, replayed.nonce) == (2, AT)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{}", b"{", b'{"version":1,"version":1}', b'{"a":NaN}', b"\xff"],
)
def test_rubbish_is_not_a_record(text: bytes) -> None:
    with pytest.raises(SubluminalError):
        decode_audit_record(text)


def test_text_that_is_not_unicode_is_not_a_record() -> None:
    with pytest.raises(SubluminalError):
        decode_audit_record('{"at":"\ud800"}')


json_numbers = st.sampled_from(["1e400", "-1e400", "9007199254740993", "1e-400", "0.1e1", "true"])
places = st.sampled_from(
    ["durationMs", "version", "envelope", "decision", "decision_basis", "plan"]
)


@given(st.dictionaries(places, json_numbers | st.just("{}"), min_size=1, max_size=3), st.booleans())
def test_damaged_records_are_refused_or_told_apart(damage: dict[str, str], nested: bool) -> None:
    made = wire(record())
    for place in damage:
        made[place] = {"version": 3, "x": f"@{place}"} if nested else f"@{place}"
    text = msgspec.json.encode(made).decode()
    for place, number in damage.items():
        text = text.replace(f'"@{place}"', number)
    try:
        read = decode_audit_record(text)
    except SubluminalError:
        return
    assert verify_audit_record(read).verified in (True, False, None)
    assert (verify_audit_record(read).verified is True) <= (
        text == msgspec.json.encode(read).decode()
    )


def test_numbers_that_no_runtime_hashed_are_damage() -> None:
    made = msgspec.structs.replace(record(), plan={"n": 2**53 + 1})
    assert verify_audit_record(made).reason == "tampered"


def test_unknown_versions_and_members_are_refused() -> None:
    made = wire(record())
    for changed in ({"version": 6}, {"version": 0}, {"more": 1}):
        with pytest.raises(SubluminalError):
            decode_audit_record(msgspec.json.encode(made | changed))


def test_a_record_is_superseded_for_a_known_reason() -> None:
    with pytest.raises(SubluminalError, match="mood"):
        record(supersedes=Supersedes("0" * 64, AT, "mood"))


def test_fractions_and_rewrites_survive_the_file() -> None:
    made = envelope({"amount": 0.1, "more": 12345678.9})
    written = msgspec.json.encode(record(envelope=made, decision=Rewrite(made, "r")))
    read = decode_audit_record(written.replace(b"0.1", b"0.10"))
    assert verify_audit_record(read).verified is True
    assert replay_envelope_from_audit(read) == made
    assert decision_from_audit(read) == Rewrite(made, "r")
