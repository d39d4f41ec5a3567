"""Secrets that packs, payloads and handlers let slip: none is on disk, and none is told."""

from typing import Any

import pytest
from tests.adapters.in_process.conftest import Till
from tests.adapters.in_process.paying import KIND, paying
from tests.requirements import requirement

from subluminal.adapters.in_process.attempts import Collector
from subluminal.clock import SystemClock
from subluminal.kernel import (
    Decision,
    Defer,
    Escalate,
    EscalateTo,
    IntentActor,
    IntentEnvelope,
    Refuse,
    RequestConfirmation,
    Rewrite,
    adjudicate_and_audit,
    basis,
    build_envelope,
    named,
    refuse,
)
from subluminal.sdk import install_pack

CANARY = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
WHY = (basis("business", "rule_violated", note=CANARY),)


def slip(envelope: IntentEnvelope, state: Any) -> Decision | None:
    """Says the secret in an answer of every kind."""
    said = state.get("says")
    if said == "raise":
        raise RuntimeError(CANARY)
    if said == "rewrite" and "key" in envelope.payload:
        return Rewrite(without_key(envelope), f"dropped {CANARY}", WHY)
    answers: dict[str, Decision] = {
        "refuse": Refuse(refuse("AUTH", "pay.too_much", f"no {CANARY}", CANARY), WHY),
        "code": Refuse(refuse("AUTH", CANARY, "no"), WHY),
        "ask": RequestConfirmation(f"use {CANARY}?", WHY),
        "escalate": Escalate(EscalateTo.HUMAN, f"use {CANARY}?", WHY),
        "defer": Defer(CANARY, 5_000, WHY),
    }
    return answers.get(said)


def without_key(envelope: IntentEnvelope) -> IntentEnvelope:
    return build_envelope(
        envelope.kind,
        {"amount": 5},
        actor=envelope.actor,
        taint=envelope.taint,
        nonce=envelope.nonce,
        created_at=envelope.created_at,
        origin=envelope.origin,
    )


@requirement("kernel:records-masked")
@pytest.mark.parametrize("mode", ["metadata", "full", "off"])
def test_no_secret_is_on_disk_or_told(till: Till, mode: str):
    till.home.mkdir(mode=0o700)
    (till.home / "config.toml").write_text(f'[record]\nmode = "{mode}"\n')
    till.pack = paying(state_guards=(named("slip", slip),))
    payload = {"amount": 5, "key": CANARY, CANARY: 1}
    till.on_pay = lambda _envelope: {"key": CANARY}
    for said in ("raise", "rewrite", "refuse", "code", "ask", "escalate", "defer", None):
        state = {"says": said, "key": CANARY}
        done = till.execute(5, f"{said} {CANARY}", payload=payload, state=state)
        assert CANARY not in done.message
    till.execute(5, kind=f"pay {CANARY}")

    def fail(_envelope: Any) -> None:
        raise RuntimeError(CANARY)

    till.on_pay = fail
    with pytest.raises(RuntimeError):
        till.execute(5, "fails")
    till.execute(5, "old", legacy=lambda: fail(None))
    till.door.lower_taint("UNTRUSTED", source=CANARY)
    till.events()
    files = [path for path in till.home.rglob("*") if path.is_file()]
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("said", ["refuse", "defer", "raise"])
def test_what_goes_to_stderr_is_masked(capsys: pytest.CaptureFixture[str], said: str):
    made = paying(state_guards=(named("slip", slip),))
    pack, context = install_pack(made, allow_default_execute=True)
    envelope = build_envelope(
        KIND,
        {"amount": 1},
        actor=IntentActor("llm", "s"),
        taint="UNTRUSTED",
        nonce="n",
        created_at="2026-01-01T00:00:00.000Z",
    )
    adjudicate_and_audit(
        envelope,
        {"says": said},
        pack.policy,
        sink=Collector(),
        clock=SystemClock(),
        context=context,
    )
    shown = capsys.readouterr().err
    assert "[subluminal-kernel] decision" in shown
    assert CANARY not in shown
