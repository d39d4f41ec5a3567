"""An agent that pays refunds: its model proposes, the pack `payments_pix` and your policies decide.

Run it with `python examples/agents/refunds.py`, then look at it with `sub tail --no-follow`. Here a list
stands for the model; put yours in `propose`.
"""

from subluminal.sdk import open_kernel

REFUND = "pix.charge.refund"
CHARGES = {
    "c-1": {"id": "c-1", "amountCentavos": 4_000, "status": "confirmed"},
    "c-2": {"id": "c-2", "amountCentavos": 90_000, "status": "confirmed"},
    "c-3": {"id": "c-3", "amountCentavos": 2_000, "status": "refunded"},
}


def propose():
    """Yields what a model asks for, and gets back what it is told."""
    for charge, amount in [("c-1", 4_000), ("c-1", 9_999), ("c-2", 60_000), ("c-3", 2_000)]:
        told = yield {"chargeId": charge, "refundCentavos": amount, "reason": "asked by mail"}
        print(f"{charge} {amount}: {told}")


def pay(envelope):
    """Does what was decided. Only here does money move."""
    charge = CHARGES[envelope.payload["chargeId"]]
    charge["status"] = "refunded"
    return {"refunded": envelope.payload["refundCentavos"]}


def main():
    model = propose()
    with open_kernel("payments_pix", agent_id="refunds") as kernel:
        payload = next(model)
        for number in range(100):
            state = {"charges": CHARGES}
            done = kernel.execute(REFUND, payload, state=state, nonce=f"r-{number}", handler=pay)
            try:
                payload = model.send(done.message or f"done: {done.result}")
            except StopIteration:
                break


if __name__ == "__main__":
    main()
