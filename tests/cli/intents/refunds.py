"""A pack with a few answers, for runs whose record is looked at: `refund.pay` of some amount."""

from typing import Any

from subluminal.kernel import (
    Decision,
    Defer,
    Execute,
    IntentEnvelope,
    Pack,
    Plan,
    PolicyBundle,
    Refuse,
    Rewrite,
    basis,
    build_envelope,
    named,
    refuse,
    static_planner,
    system_taint_policy,
)

KIND = "refund.pay"
_WHY = (basis("business", "rule_violated"),)


def judge(envelope: IntentEnvelope, _state: Any) -> Decision:
    """Refuses more than 100, waits for a signal above 50, pays at most 10."""
    amount = envelope.payload["amount"]
    note = envelope.payload.get("note", "more than 100")
    if amount > 100:
        return Refuse(refuse("BUSINESS_RULE", "refund.too_much", f"That is {note}."), _WHY)
    if amount > 50:
        return Defer("refund.approved", 900_000, _WHY)
    if amount > 10:
        capped = build_envelope(
            envelope.kind,
            {**envelope.payload, "amount": 10},
            actor=envelope.actor,
            taint=envelope.taint,
            nonce=envelope.nonce,
            created_at=envelope.created_at,
            origin=envelope.origin,
        )
        return Rewrite(capped, "at most 10", (basis("business", "quantity_capped"),))
    return Execute((basis("business", "rule_satisfied"),))


def refunds() -> Pack:
    """The pack."""
    return Pack(
        id="refunds",
        version="2.0.0",
        intents=(KIND,),
        policy=PolicyBundle((), (), system_taint_policy(()), (named("judge", judge),), "REFUSE"),
        planner=static_planner(Plan((), (KIND,))),
        basis_codes=("refund.too_much",),
        signals=("refund.approved",),
    )


PACK = refunds()
