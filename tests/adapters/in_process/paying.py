"""A pack that has an answer of every kind: `pay.out` of some amount."""

from typing import Any

from subluminal.kernel import (
    Decision,
    Defer,
    Escalate,
    EscalateTo,
    IntentEnvelope,
    Pack,
    Plan,
    PolicyBundle,
    Refuse,
    RequestConfirmation,
    Rewrite,
    basis,
    build_envelope,
    named,
    refuse,
    static_planner,
    system_taint_policy,
)

KIND = "pay.out"
AMOUNTS = {
    "EXECUTE": 5,
    "REWRITE": 15,
    "DEFER_TIME": 25,
    "DEFER": 35,
    "ESCALATE": 45,
    "REQUEST_CONFIRMATION": 55,
    "REFUSE": 105,
}
"""An amount for each answer."""
_WHY = (basis("business", "rule_violated"),)


def judge_amount(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    """Answers by the size of the amount."""
    amount = envelope.payload["amount"]
    answers = (
        (100, Refuse(refuse("BUSINESS_RULE", "pay.too_much", "That is too much."), _WHY)),
        (50, RequestConfirmation(f"Pay {amount}?", _WHY)),
        (40, Escalate(EscalateTo.HUMAN, "an unusual amount", _WHY)),
        (30, Defer("payment.confirmed", 900_000, _WHY)),
        (20, Defer("time", 1_500, _WHY)),
        (10, Rewrite(_capped(envelope), "capped at 10", (basis("business", "quantity_capped"),))),
    )
    return next((answer for above, answer in answers if amount > above), None)


def _capped(envelope: IntentEnvelope) -> IntentEnvelope:
    return build_envelope(
        envelope.kind,
        {**envelope.payload, "amount": 10},
        actor=envelope.actor,
        taint=envelope.taint,
        nonce=envelope.nonce,
        created_at=envelope.created_at,
        origin=envelope.origin,
    )


def paying(
    *, state_guards: Any = (), trusted: tuple[str, ...] = (), default: str = "EXECUTE"
) -> Pack:
    """The pack. Kinds in `trusted` need an intent that is TRUSTED."""
    return Pack(
        id="pay",
        version="1.2.0",
        intents=(KIND, "pay.in"),
        policy=PolicyBundle(
            tuple(state_guards),
            (),
            system_taint_policy(trusted),
            (named("judge_amount", judge_amount),),
            default,
        ),
        planner=static_planner(Plan((), (KIND,))),
        basis_codes=("pay.too_much",),
        signals=("payment.confirmed", "time"),
    )
