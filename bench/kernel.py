"""What the kernel costs around the guards of a policy, and an envelope around its hash.

`adjudicate` against a bare loop that asks the same ten guards of the same envelope. The ten are a
payment policy like the public PIX pack (states, a scope, thresholds, a cap, an EXECUTE at the end),
once as functions that a pack's author writes, once from the guard factories. Ten lambdas that do
nothing are measured too: there the loop is all that the kernel is compared with, so the ratio says
what the checks of envelope, hash and taint cost, in calls of an empty function. CPU time counts, so
other programs on the machine do not.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from statistics import median
from typing import Any

from bench.harness import Result
from subluminal.canonical import Profile, encode
from subluminal.kernel import (
    Decision,
    Escalate,
    EscalateTo,
    Execute,
    Guard,
    IntentActor,
    IntentEnvelope,
    PolicyBundle,
    Refuse,
    RequestConfirmation,
    adjudicate,
    basis,
    build_envelope,
    clamp,
    confirm,
    escalate,
    refuse,
    state_defer,
    system_taint_policy,
    threshold,
)

ADJUDICATE_BAR = 8.0
BUILD_BAR = 2.0
_EMPTY_BAR = 16.0
_ROUNDS, _NUMBER = 80, 400
KIND = "pix.charge.refund"
PAYLOAD = {"chargeId": "c-1", "amountCentavos": 4200, "reason": "the customer sent it back"}
STATE: dict[str, Any] = {
    "charges": {"c-1": {"status": "confirmed", "amountCentavos": 9900}},
    "scopes": ["refunds"],
    "maintenance": False,
}
Says = Decision | None


def measure() -> Iterator[Result]:
    """Yields adjudicate over a bare loop for three policies, then build_envelope over its hash."""
    policies = [
        ("guards as functions", _written(), ADJUDICATE_BAR),
        ("guards of the factories", _made(), ADJUDICATE_BAR),
        ("guards that do nothing", _empty(), _EMPTY_BAR),
    ]
    for name, policy, bar in policies:
        envelope = _built()
        assert adjudicate(envelope, STATE, policy).kind == "EXECUTE"
        ours, bare = _cpu_seconds([_adjudicating(envelope, policy), _looping(envelope, policy)])
        detail = f"{ours * 1e6:.2f} us against {bare * 1e6:.2f} us: {1 / ours:,.0f} per second"
        yield Result(f"adjudicate, ten {name}", ours / bare, bar, False, detail)
    ours, bare = _cpu_seconds([_built, _hashing(_built())])
    detail = f"{ours * 1e6:.2f} us against {bare * 1e6:.2f} us"
    yield Result("build_envelope over bytes and SHA-256", ours / bare, BUILD_BAR, False, detail)


def _cpu_seconds(tasks: Sequence[Callable[[], object]]) -> list[float]:
    """Returns the median CPU time of each task; the tasks take turns."""
    times: list[list[float]] = [[] for _ in tasks]
    for task in tasks:
        task()
    gc.collect()
    gc.disable()
    try:
        for _ in range(_ROUNDS):
            for task, seconds in zip(tasks, times, strict=True):
                begun = time.process_time()
                for _ in range(_NUMBER):
                    task()
                seconds.append((time.process_time() - begun) / _NUMBER)
    finally:
        gc.enable()
    return [median(seconds) for seconds in times]


def _built() -> IntentEnvelope:
    return build_envelope(
        KIND,
        PAYLOAD,
        actor=IntentActor("user", "session-1"),
        taint="TRUSTED",
        nonce="0b7e3c1e-6f0c-4e57-9d5b-0d8c7f1f2a11",
        created_at="2026-01-01T00:00:00.000Z",
    )


def _hashing(envelope: IntentEnvelope) -> Callable[[], object]:
    covered = {
        "version": envelope.version,
        "kind": envelope.kind,
        "payload": envelope.payload,
        "nonce": envelope.nonce,
        "actor": {"principal": envelope.actor.principal, "sessionId": envelope.actor.session_id},
        "taint": str(envelope.taint),
    }
    assert sha256(encode(covered, Profile.JCS_NFC)).hexdigest() == envelope.intent_hash
    return lambda: sha256(encode(covered, Profile.JCS_NFC)).hexdigest()


def _adjudicating(envelope: IntentEnvelope, policy: PolicyBundle) -> Callable[[], object]:
    return lambda: adjudicate(envelope, STATE, policy)


def _looping(envelope: IntentEnvelope, policy: PolicyBundle) -> Callable[[], object]:
    guards = [*policy.state_guards, *policy.auth_guards, *policy.business]
    assert len(guards) == 10

    def loop() -> Says:
        for guard in guards:
            decision = guard(envelope, STATE)
            if decision is not None:
                return decision
        return None

    return loop


def _policy(guards: Sequence[Guard], default: str = "REFUSE") -> PolicyBundle:
    taint = system_taint_policy(["pix.charge.confirm"])
    return PolicyBundle(guards[:4], guards[4:5], taint, guards[5:], default)


def _empty() -> PolicyBundle:
    return _policy([lambda _envelope, _state: None for _ in range(10)], "EXECUTE")


def _no(code: str) -> Refuse:
    refusal = refuse("STATE", code, "This charge cannot be refunded.")
    return Refuse(refusal, (basis("state", "transition_illegal"),))


def _charge(envelope: IntentEnvelope, state: Any) -> Any:
    return state["charges"].get(envelope.payload.get("chargeId"))


def _amount(envelope: IntentEnvelope, _state: Any) -> Any:
    return envelope.payload.get("amountCentavos")


def _is_refund(envelope: IntentEnvelope, _state: Any) -> bool:
    return envelope.kind == KIND


_LARGE = Escalate(EscalateTo.SUPERVISOR, "a large refund", (basis("business", "rule_violated"),))
_ASK = RequestConfirmation("Refund it?", (basis("business", "rule_satisfied"),))
_YES = Execute((basis("business", "rule_satisfied"),))


def _confirm_failed(envelope: IntentEnvelope, state: Any) -> Says:
    if envelope.kind != "pix.charge.confirm":
        return None
    return _LARGE if _charge(envelope, state)["status"] == "failed" else None


def _refund_missing(envelope: IntentEnvelope, state: Any) -> Says:
    if envelope.kind != KIND or _charge(envelope, state) is not None:
        return None
    return _no("pix.charge.not_found")


def _refund_again(envelope: IntentEnvelope, state: Any) -> Says:
    if envelope.kind != KIND or _charge(envelope, state)["status"] != "refunded":
        return None
    return _no("pix.charge.already_refunded")


def _refund_unconfirmed(envelope: IntentEnvelope, state: Any) -> Says:
    if envelope.kind != KIND or _charge(envelope, state)["status"] == "confirmed":
        return None
    return _no("pix.charge.not_confirmed")


def _scope(envelope: IntentEnvelope, state: Any) -> Says:
    if envelope.kind != KIND or "refunds" in state["scopes"]:
        return None
    return _no("pix.scope")


def _create_amount(envelope: IntentEnvelope, _state: Any) -> Says:
    if envelope.kind != "pix.charge.create" or envelope.payload["amountCentavos"] > 0:
        return None
    return _no("pix.charge.amount_invalid")


def _refund_amount(envelope: IntentEnvelope, state: Any) -> Says:
    amount = envelope.payload["amountCentavos"]
    if envelope.kind != KIND or 0 < amount <= _charge(envelope, state)["amountCentavos"]:
        return None
    return _no("pix.charge.amount_invalid")


def _refund_large(envelope: IntentEnvelope, _state: Any) -> Says:
    if envelope.kind != KIND or envelope.payload["amountCentavos"] < 100_000:
        return None
    return _LARGE


def _refund_medium(envelope: IntentEnvelope, _state: Any) -> Says:
    if envelope.kind != KIND or envelope.payload["amountCentavos"] < 50_000:
        return None
    return _ASK


def _refund_executes(envelope: IntentEnvelope, _state: Any) -> Says:
    return _YES if envelope.kind == KIND else None


def _written() -> PolicyBundle:
    """Guards as an author writes them: which kind, then the question."""
    return _policy(
        [
            _confirm_failed,
            _refund_missing,
            _refund_again,
            _refund_unconfirmed,
            _scope,
            _create_amount,
            _refund_amount,
            _refund_large,
            _refund_medium,
            _refund_executes,
        ]
    )


def _made() -> PolicyBundle:
    """The same policy from `escalate`, `state_defer`, `threshold`, `clamp` and `confirm`."""

    def has_status(status: str) -> Callable[[IntentEnvelope, Any], bool]:
        return lambda envelope, state: (
            envelope.kind == KIND and _charge(envelope, state)["status"] == status
        )

    def cap(envelope: IntentEnvelope, state: Any) -> int:
        return int(_charge(envelope, state)["amountCentavos"])

    guards = [
        escalate(to="human", reason="it failed", when=has_status("failed")),
        escalate(to="human", reason="refunded before", when=has_status("refunded")),
        state_defer(signal="payment.confirmed", timeout_ms=900_000, when=has_status("pending")),
        state_defer(signal="time", timeout_ms=60_000, when=lambda _e, state: state["maintenance"]),
        confirm(prompt="As admin?", when=lambda _e, state: "refunds" not in state["scopes"]),
        threshold(
            value=_amount, limit=0, comparison="<=", when=_is_refund, decision=_no("pix.amount")
        ),
        clamp(field="amountCentavos", cap=cap, when=_is_refund),
        threshold(value=_amount, limit=100_000, when=_is_refund, decision=_LARGE),
        threshold(value=_amount, limit=50_000, when=_is_refund, decision=_ASK),
        threshold(value=_amount, limit=1, when=_is_refund, decision=_YES),
    ]
    return _policy(guards)
