"""The pack `payments_pix`: scenarios in the public project's form, and where it differs from it.

`tests/cli/test_pack.py` runs the scenarios as files.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernel.making import FakeClock, Records, envelope
from tests.requirements import requirement

from subluminal.kernel import (
    Decision,
    DecisionKind,
    Defer,
    Escalate,
    Refuse,
    Rewrite,
    Scenario,
    adjudicate,
    adjudicate_and_audit,
    check_pack,
    tainted,
)
from subluminal.packs.payments_pix import CONFIRM, CREATE, PACK, REFUND

SCENARIOS = sorted((Path(__file__).parent / "pix_scenarios").glob("*.json"))


def charge(status: str = "confirmed", amount: Any = 30_000, **more: Any) -> dict[str, Any]:
    return {"charges": {"c": {"id": "c", "amountCentavos": amount, "status": status} | more}}


def refund(centavos: Any, state: dict[str, Any], **changed: Any) -> Decision:
    payload = {"chargeId": "c", "refundCentavos": centavos, "reason": "x"}
    return adjudicate(envelope(payload, kind=REFUND, **changed), state, PACK.policy)


def code(decision: Decision) -> str | None:
    return decision.refusal.code if isinstance(decision, Refuse) else None


@requirement("kernel:pix")
@pytest.mark.parametrize("centavos", [0, -1, -5000, 0.5, True, "5", None, [5], {}, -1e300, 1e-3])
def test_a_refund_is_a_positive_integer(centavos: Any) -> None:
    assert code(refund(centavos, charge())) == "pix.charge.amount_invalid"


@requirement("kernel:pix")
@pytest.mark.parametrize(("refunded", "most"), [(0, 30_000), (29_999, 1), (-7, 30_000)])
def test_a_refund_is_capped_at_what_is_left(refunded: int, most: int) -> None:
    decision = refund(1_000_000, charge(refundedCentavos=refunded))
    assert isinstance(decision, Rewrite)
    assert decision.rewritten.payload["refundCentavos"] == most
    assert refund(most, charge(refundedCentavos=refunded)).kind is DecisionKind.EXECUTE


@requirement("kernel:pix")
def test_nothing_is_left_of_a_charge_that_was_refunded_in_parts() -> None:
    assert code(refund(1, charge(refundedCentavos=30_000))) == "pix.charge.already_refunded"
    assert code(refund(1, charge(refundedCentavos=30_001))) == "pix.charge.already_refunded"


@pytest.mark.parametrize(
    ("centavos", "want"),
    [
        (49_999, DecisionKind.EXECUTE),
        (50_000, DecisionKind.REQUEST_CONFIRMATION),
        (99_999, DecisionKind.REQUEST_CONFIRMATION),
        (100_000, DecisionKind.ESCALATE),
        (50_000.0, DecisionKind.REQUEST_CONFIRMATION),
    ],
)
def test_the_thresholds(centavos: float, want: DecisionKind) -> None:
    decision = refund(centavos, charge(amount=500_000))
    assert decision.kind is want
    if isinstance(decision, Escalate):
        assert (decision.to, decision.reason) == ("supervisor", "a refund of R$ 1,000.00")


def test_a_capped_refund_is_judged_once_more() -> None:
    """R$ 3,000 of a charge of R$ 1,000 become R$ 1,000, about which a supervisor decides."""
    payload = {"chargeId": "c", "refundCentavos": 300_000, "reason": "x"}
    done = adjudicate_and_audit(
        envelope(payload, kind=REFUND),
        charge(amount=100_000),
        PACK.policy,
        sink=Records(),
        clock=FakeClock(),
    )
    assert done.decision.kind is DecisionKind.ESCALATE


def test_a_field_with_a_level_is_judged_by_its_value() -> None:
    assert refund(tainted(20_000, "TRUSTED"), charge()).kind is DecisionKind.EXECUTE
    assert code(refund(tainted(-1, "TRUSTED"), charge())) == "pix.charge.amount_invalid"


def test_a_charge_waits_for_its_payment() -> None:
    decision = adjudicate(
        envelope({"amountCentavos": 5, "payerDocument": "1", "description": "x"}, kind=CREATE),
        {"charges": {}},
        PACK.policy,
    )
    assert isinstance(decision, Defer)
    assert (decision.signal, decision.timeout_ms) == ("payment.confirmed", 900_000)


def test_a_session_refunds_its_own_charges() -> None:
    mine = charge() | {"sessions": {"s-1": ["c"], "s-2": []}}
    assert refund(1, mine).kind is DecisionKind.EXECUTE
    others = charge() | {"sessions": {"s-2": ["c"]}}
    assert code(refund(1, others)) == "pix.charge.not_found"


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"charges": None},
        {"charges": []},
        {"charges": {"c": 5}},
        charge(amount="many"),
        charge(amount=None),
        charge(refundedCentavos="x"),
        charge(status=5),
    ],
)
def test_a_state_of_the_wrong_shape_refunds_nothing(state: Any) -> None:
    assert refund(1, state).kind is DecisionKind.REFUSE


@pytest.mark.parametrize("charge_id", [None, 5, [], {"a": 1}, "", "__class__"])
def test_what_is_no_id_is_not_found(charge_id: Any) -> None:
    for kind, taint in ((REFUND, "UNTRUSTED"), (CONFIRM, "TRUSTED")):
        payload = {"chargeId": charge_id, "refundCentavos": 1}
        decision = adjudicate(envelope(payload, kind=kind, taint=taint), charge(), PACK.policy)
        assert code(decision) == "pix.charge.not_found"


def test_a_model_proposes_refunds_only_if_something_was_paid() -> None:
    assert PACK.planner.plan(charge(), None).allowed_intents == [CREATE, REFUND]
    assert PACK.planner.plan(charge("pending"), None).allowed_intents == [CREATE]
    assert PACK.planner.plan({}, None).visible_read_tools == ["list_pix_charges", "get_pix_charge"]


def test_it_passes_all_eight_checks() -> None:
    files = [json.loads(path.read_text()) for path in SCENARIOS]
    probes = [
        Scenario(row["intent"]["kind"], row["intent"]["payload"], row["state"]) for row in files
    ]
    assert len(probes) == 15
    assert [result for result in check_pack(PACK, scenarios=probes) if not result.passed] == []
