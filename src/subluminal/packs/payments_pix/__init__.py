"""The pack `payments_pix`: charges of Brazil's instant payments are made, confirmed and refunded.

    pix.charge.create   {amountCentavos, payerDocument, description}    waits for the payment
    pix.charge.confirm  {chargeId, providerTxId, confirmedAt}           the provider's: TRUSTED
    pix.charge.refund   {chargeId, refundCentavos, reason}

State: `charges`, which maps ids to {id, amountCentavos, status, refundedCentavos?, …}, with status
pending, confirmed, refunded, expired or failed. Optional `sessions` maps a session to the charges
that it may refund; to others those charges do not exist.

As the public project's pack has it, but for refunds: an amount that is not a positive integer is
refused, and what was refunded before counts.
"""

from collections.abc import Mapping
from typing import Any

from subluminal import __version__
from subluminal.kernel import (
    Decision,
    DecisionKind,
    Escalate,
    EscalateTo,
    Execute,
    IntentEnvelope,
    Pack,
    Plan,
    PolicyBundle,
    Refuse,
    RequestConfirmation,
    ToolClassification,
    basis,
    clamp,
    named,
    refuse,
    safe_plan,
    state_defer,
    system_taint_policy,
    threshold,
)
from subluminal.packs.fields import member

CREATE, CONFIRM, REFUND = "pix.charge.create", "pix.charge.confirm", "pix.charge.refund"
SIGNAL = "payment.confirmed"
PAYMENT_TIMEOUT_MS = 900_000
SUPERVISOR_CENTAVOS = 100_000
"""A supervisor decides about refunds from here on: R$ 1,000.00."""
CONFIRM_CENTAVOS = 50_000
"""The user confirms refunds from here on: R$ 500.00."""

NOT_FOUND = "pix.charge.not_found"
NOT_CONFIRMED = "pix.charge.not_confirmed"
ALREADY_REFUNDED = "pix.charge.already_refunded"
INVALID_STATE = "pix.charge.invalid_state_for_confirm"
AMOUNT_INVALID = "pix.charge.amount_invalid"

_AMOUNTS = {CREATE: "amountCentavos", REFUND: "refundCentavos"}


# The state of a charge


def _charge(envelope: IntentEnvelope, state: Any) -> Mapping[str, Any] | None:
    charge_id = member(envelope, "chargeId")
    charge = state.get("charges", {}).get(charge_id) if isinstance(charge_id, str) else None
    return charge if isinstance(charge, Mapping) else None


def _left(charge: Mapping[str, Any]) -> int:
    """Returns what can still be refunded. Raises if the charge on record has no such amounts."""
    return int(charge["amountCentavos"]) - max(0, int(charge.get("refundedCentavos") or 0))


def _refused(code: str, said: str, envelope: IntentEnvelope, reason: str, **detail: Any) -> Refuse:
    charge_id = member(envelope, "chargeId")
    told = {"kind": envelope.kind, "chargeId": charge_id} | detail
    return Refuse(refuse("STATE", code, said), (basis("state", reason, **told),))


def escalate_confirm_of_failed_charge(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """A payment for a charge that failed: a person compares both records."""
    charge = _charge(envelope, state) if envelope.kind == CONFIRM else None
    if charge is None or charge.get("status") != "failed":
        return None
    reason = basis("state", "terminal_state", kind=envelope.kind, status="failed")
    said = "a payment arrived for a charge that is marked as failed"
    return Escalate(EscalateTo.HUMAN, said, (reason,))


def check_confirmed_charge(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """Only a pending charge can be confirmed."""
    if envelope.kind != CONFIRM:
        return None
    charge = _charge(envelope, state)
    if charge is None:
        return _not_found(envelope)
    status = charge.get("status")
    if status != "pending":
        said = "This PIX charge cannot be confirmed any more."
        return _refused(INVALID_STATE, said, envelope, "transition_illegal", status=status)
    return None


def check_refunded_charge(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """Only a confirmed charge can be refunded, as long as something is left of it."""
    if envelope.kind != REFUND:
        return None
    charge = _charge(envelope, state)
    if charge is None:
        return _not_found(envelope)
    status = charge.get("status")
    if status == "refunded" or (status == "confirmed" and _left(charge) <= 0):
        said = "This PIX charge was refunded before."
        return _refused(ALREADY_REFUNDED, said, envelope, "terminal_state")
    if status != "confirmed":
        said = "This PIX charge has not been paid."
        return _refused(NOT_CONFIRMED, said, envelope, "transition_illegal", status=status)
    return None


def _not_found(envelope: IntentEnvelope) -> Refuse:
    said = "There is no PIX charge with this id."
    return _refused(NOT_FOUND, said, envelope, "transition_illegal")


def check_owner(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """A session refunds its own charges. Without `sessions` in the state, any."""
    sessions = state.get("sessions")
    if envelope.kind != REFUND or sessions is None:
        return None
    if member(envelope, "chargeId") in sessions.get(envelope.actor.session_id, ()):
        return None
    # The same words as for a charge that does not exist: a stranger learns nothing.
    refusal = refuse("AUTH", NOT_FOUND, "There is no PIX charge with this id.")
    return Refuse(refusal, (basis("auth", "scope_insufficient", kind=envelope.kind),))


# Amounts


def _amount(envelope: IntentEnvelope, _state: Any) -> int | None:
    """Returns the amount in centavos; None if it is not a positive integer. JSON's 5.0 is 5."""
    amount = member(envelope, _AMOUNTS[envelope.kind])
    if isinstance(amount, float) and amount.is_integer():
        amount = int(amount)
    return amount if type(amount) is int and amount > 0 else None


def check_amount(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """An amount is a positive integer, also that of a refund."""
    if envelope.kind not in _AMOUNTS or _amount(envelope, state) is not None:
        return None
    refusal = refuse(
        "BUSINESS_RULE", AMOUNT_INVALID, "The amount must be a positive number of whole centavos."
    )
    return Refuse(refusal, (basis("business", "rule_violated", rule="positive_integer_centavos"),))


def _is_refund(envelope: IntentEnvelope, _state: Any) -> bool:
    return envelope.kind == REFUND


def _most(envelope: IntentEnvelope, state: Any) -> int | None:
    charge = _charge(envelope, state)
    return None if charge is None else _left(charge)


def _escalated(_envelope: IntentEnvelope, _state: Any, centavos: float) -> Decision:
    rule = "supervisor_threshold_reached"
    reason = basis("business", "rule_satisfied", rule=rule, requested=centavos)
    return Escalate(EscalateTo.SUPERVISOR, f"a refund of {_reais(centavos)}", (reason,))


def _asked(_envelope: IntentEnvelope, _state: Any, centavos: float) -> Decision:
    rule = "confirm_threshold_reached"
    reason = basis("business", "rule_satisfied", rule=rule, requested=centavos)
    return RequestConfirmation(f"Refund {_reais(centavos)}?", (reason,))


def _reais(centavos: float) -> str:
    whole, rest = divmod(int(centavos), 100)
    return f"R$ {whole:,}.{rest:02}"


# What may run


def execute_confirm(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """A pending charge is confirmed; the state guards and the taint gate let only that pass."""
    charge = _charge(envelope, state) if envelope.kind == CONFIRM else None
    if charge is None or charge.get("status") != "pending":
        return None
    return Execute((basis("business", "rule_satisfied", kind=envelope.kind),))


def execute_refund(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """A confirmed charge is refunded, within what is left of it."""
    charge = _charge(envelope, state) if envelope.kind == REFUND else None
    if charge is None or charge.get("status") != "confirmed":
        return None
    return Execute((basis("business", "rule_satisfied", kind=envelope.kind),))


TOOLS = ToolClassification(
    read_only=("list_pix_charges", "get_pix_charge"),
    mutating=("create_pix_charge", "refund_pix_charge"),
)


class _Planner:
    """A model proposes refunds only while there is something to refund, and never confirms."""

    def plan(self, state: Any, _context: Any, /) -> Plan:
        charges = state.get("charges", {}).values()
        has_paid = any(charge.get("status") == "confirmed" for charge in charges)
        intents = (CREATE, REFUND) if has_paid else (CREATE,)
        return Plan(list(TOOLS.read_only), list(intents))


PACK = Pack(
    id="payments_pix",
    version=__version__,
    intents=(CREATE, CONFIRM, REFUND),
    policy=PolicyBundle(
        state_guards=(
            escalate_confirm_of_failed_charge,
            check_confirmed_charge,
            check_refunded_charge,
        ),
        auth_guards=(check_owner,),
        taint=system_taint_policy([CONFIRM]),
        business=(
            check_amount,
            named("clamp_refund", clamp(field="refundCentavos", cap=_most, when=_is_refund)),
            named(
                "escalate_large_refund",
                threshold(
                    value=_amount, limit=SUPERVISOR_CENTAVOS, decision=_escalated, when=_is_refund
                ),
            ),
            named(
                "confirm_refund",
                threshold(value=_amount, limit=CONFIRM_CENTAVOS, decision=_asked, when=_is_refund),
            ),
            named(
                "wait_for_payment",
                state_defer(
                    signal=SIGNAL,
                    timeout_ms=PAYMENT_TIMEOUT_MS,
                    when=lambda envelope, _state: envelope.kind == CREATE,
                ),
            ),
            execute_confirm,
            execute_refund,
        ),
        default=DecisionKind.REFUSE.value,
    ),
    planner=safe_plan(_Planner(), TOOLS),
    basis_codes=(NOT_FOUND, NOT_CONFIRMED, ALREADY_REFUNDED, INVALID_STATE, AMOUNT_INVALID),
    signals=(SIGNAL,),
)
