"""An agent that pays refunds: its model proposes; the pack `payments_pix` and your policies decide.

`python examples/agents/refunds.py` runs it, `sub query intents` shows it. A list is the model.
"""

from subluminal.sdk import open_kernel

PROPOSED = [("c-1", 4_000), ("c-2", 9_999), ("c-3", 60_000), ("c-4", 200_000), ("c-1", 10)]
CHARGES = {
    "c-1": {"id": "c-1", "amountCentavos": 4_000, "status": "confirmed"},
    "c-2": {"id": "c-2", "amountCentavos": 5_000, "status": "confirmed"},
    "c-3": {"id": "c-3", "amountCentavos": 60_000, "status": "confirmed"},
    "c-4": {"id": "c-4", "amountCentavos": 300_000, "status": "confirmed"},
}


def pay(envelope):
    """Does what was decided. Only here does money move."""
    CHARGES[envelope.payload["chargeId"]]["status"] = "refunded"
    return envelope.payload["refundCentavos"]


def main():
    """Puts every proposal to the kernel, and shows what the model is told."""
    with open_kernel("payments_pix", agent_id="refunds") as kernel:
        for number, (charge, amount) in enumerate(PROPOSED):
            done = kernel.execute(
                "pix.charge.refund",
                {"chargeId": charge, "refundCentavos": amount, "reason": "asked by mail"},
                state={"charges": CHARGES},
                nonce=f"refund-{number}",
                handler=pay,
            )
            told = done.message if done.result is None else f"paid {done.result}. {done.message}"
            print(f"{charge} {amount}: {told.strip()}")


if __name__ == "__main__":
    main()
