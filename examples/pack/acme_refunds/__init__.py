"""Refunds of a shop: the intent `shop.refund` {order, cents}.

State: {orders: {ID: {paid, refunded, session}}}.
"""

from subluminal.kernel import (
    Execute,
    Pack,
    Plan,
    PolicyBundle,
    Refuse,
    basis,
    clamp,
    confirm,
    named,
    refuse,
    static_planner,
    system_taint_policy,
)


def order_of(envelope, state):
    return state.get("orders", {}).get(envelope.payload.get("order"))


def check_order(envelope, state):
    """There must be such an order."""
    if order_of(envelope, state) is not None:
        return None
    refusal = refuse("STATE", "shop.order_not_found", "There is no such order.")
    return Refuse(refusal, (basis("state", "transition_illegal"),))


def check_session(envelope, state):
    """A session refunds its own orders."""
    if order_of(envelope, state)["session"] == envelope.actor.session_id:
        return None
    refusal = refuse("AUTH", "shop.order_not_yours", "This order belongs to someone else.")
    return Refuse(refusal, (basis("auth", "scope_insufficient"),))


def check_cents(envelope, state):
    """An amount is a positive integer."""
    cents = envelope.payload.get("cents")
    if type(cents) is int and cents > 0:
        return None
    refusal = refuse("BUSINESS_RULE", "shop.cents_invalid", "This is not an amount.")
    return Refuse(refusal, (basis("business", "rule_violated", rule="positive_integer"),))


def left_of(envelope, state):
    order = order_of(envelope, state)
    return order["paid"] - order["refunded"]


def is_large(envelope, state):
    return envelope.payload["cents"] >= 10_000


def execute_refund(envelope, state):
    """Whatever came this far may run."""
    return Execute((basis("business", "rule_satisfied"),))


PACK = Pack(
    id="acme_refunds",
    version="1.0.0",
    intents=["shop.refund"],
    policy=PolicyBundle(
        state_guards=[check_order],
        auth_guards=[check_session],
        taint=system_taint_policy([]),
        business=[
            check_cents,
            named("cap_at_what_is_left", clamp(field="cents", cap=left_of)),
            named("confirm_large", confirm(prompt="Refund this much?", when=is_large)),
            execute_refund,
        ],
        default="REFUSE",
    ),
    planner=static_planner(Plan(["get_order"], ["shop.refund"])),
    basis_codes=["shop.order_not_found", "shop.order_not_yours", "shop.cents_invalid"],
)
