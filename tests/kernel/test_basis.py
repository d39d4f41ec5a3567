"""The closed vocabularies: reasons, decisions, refusals (conformance checklist 4)."""

import msgspec
import pytest
from tests.kernel.making import envelope
from tests.requirements import requirement

from subluminal.kernel import (
    BASIS_CODES,
    KERNEL_REFUSAL_CODES,
    Basis,
    Decision,
    DecisionKind,
    Defer,
    Escalate,
    EscalateTo,
    Execute,
    IntegrityFailure,
    RefusalKind,
    Refuse,
    ReplayMismatchKind,
    RequestConfirmation,
    Rewrite,
    Taint,
    basis,
    is_known_basis,
    refuse,
)
from subluminal.kernel.envelope import PRINCIPALS

REASON = basis("business", "rule_satisfied", rule="x")
WIRE_REASON = {"category": "business", "code": "rule_satisfied", "detail": {"rule": "x"}}


@requirement("003:six-decisions")
@pytest.mark.parametrize(
    ("decision", "wire"),
    [
        (Execute((REASON,)), {"kind": "EXECUTE"}),
        (
            Refuse(refuse("AUTH", "no.scope", "No."), (REASON,)),
            {
                "kind": "REFUSE",
                "refusal": {"kind": "AUTH", "code": "no.scope", "userFacing": "No."},
            },
        ),
        (
            Escalate(EscalateTo.HUMAN, "large", (REASON,)),
            {"kind": "ESCALATE", "to": "human", "reason": "large"},
        ),
        (
            RequestConfirmation("Sure?", (REASON,)),
            {"kind": "REQUEST_CONFIRMATION", "prompt": "Sure?"},
        ),
        (Defer("paid", 900, (REASON,)), {"kind": "DEFER", "signal": "paid", "timeoutMs": 900}),
        (
            Rewrite(envelope(), "capped", (REASON,)),
            {"kind": "REWRITE", "rewritten": msgspec.to_builtins(envelope()), "reason": "capped"},
        ),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_decision_is_written_as_the_public_wire_has_it(
    decision: Decision, wire: dict[str, object]
) -> None:
    written = msgspec.json.decode(msgspec.json.encode(decision))
    assert written == wire | {"basis": [WIRE_REASON]}
    assert decision.kind == wire["kind"]
    assert msgspec.convert(written, Decision) == decision


@requirement("003:six-decisions", "003:four-refusals", "003:vocabulary")
def test_every_vocabulary_is_closed_as_the_checklist_says() -> None:
    """MULTIRUNTIME_CONFORMANCE 4.1 to 4.7."""
    assert set(DecisionKind) == {
        "EXECUTE", "REFUSE", "ESCALATE", "REQUEST_CONFIRMATION", "DEFER", "REWRITE"
    }  # fmt: skip
    assert set(Taint) == {"SYSTEM", "TRUSTED", "UNTRUSTED"}
    assert set(PRINCIPALS) == {"llm", "user", "system"}
    assert set(RefusalKind) == {"SECURITY", "BUSINESS_RULE", "AUTH", "STATE"}
    assert set(ReplayMismatchKind) == {"DECISION_KIND", "BASIS_DRIFT", "REFUSAL_CODE_DRIFT"}
    assert set(IntegrityFailure) == {"AUDIT_HASH_TAMPERED", "INTENT_HASH_MISMATCH"}
    assert set(BASIS_CODES) == {
        "state", "auth", "taint", "ledger", "schema", "business", "validation", "kill", "deadline",
        "confirmation", "kernel",
    }  # fmt: skip
    assert "guard_panic" in BASIS_CODES["kernel"]
    assert {"pii_redacted", "command_blocked", "session_risk_elevated"} < BASIS_CODES["validation"]
    assert len(KERNEL_REFUSAL_CODES) == 8


def test_a_reason_outside_the_vocabulary_is_not_made() -> None:
    with pytest.raises(ValueError, match="scope_ok"):
        basis("auth", "scope_ok")
    with pytest.raises(ValueError):
        basis("weather", "active")
    assert basis("kill", "active").detail is None
    assert not is_known_basis(Basis("auth", []))  # type: ignore[arg-type]
    assert not is_known_basis(Basis([], "active"))  # type: ignore[arg-type]
    assert is_known_basis(basis("deadline", "exceeded", deadlineMs=1))


def test_a_refusal_has_one_of_four_kinds() -> None:
    assert refuse("STATE", "c", "u", "d").detail == "d"
    with pytest.raises(ValueError):
        refuse("WEATHER", "c", "u")
