"""What replay reads of a pack that a door asked."""

from typing import Any

import pytest
from msgspec import UNSET
from tests.policy.bundles import bundle, rule

from subluminal.contracts.decision import LayeredPolicyRef, PolicyRef
from subluminal.contracts.events import DecisionMade, Explain
from subluminal.contracts.identity import Identity
from subluminal.contracts.intents import KernelDecision
from subluminal.contracts.vocabulary import Action, Layer, Severity, Taint
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.evaluation import NO_POLICY
from subluminal.policy.replay.comparing import Change
from subluminal.policy.replay.layering import Layering
from subluminal.policy.replay.recorded import RecordedCall, recorded_decision
from subluminal.policy.replay.recorded_packs import recorded_pack
from subluminal.policy.replay.replaying import RunReplay

PRINT = "f" * 64
PACK = PolicyRef(policy_id="pack:pay", policy_version="1", policy_hash=PRINT)
USER = PolicyRef(policy_id="mine", policy_version="1", policy_hash="a" * 64)


def kernel(kind: str, **more: Any) -> KernelDecision:
    return KernelDecision(
        **{
            "pack": "pay",
            "version": "1",
            "fingerprint": PRINT,
            "intent_kind": "pay.out",
            "intent_hash": "0" * 64,
            "kind": kind,
            "basis": [],
            "taint": Taint.UNTRUSTED,
            **more,
        }
    )


def event(action: str, policy: PolicyRef, **more: Any) -> DecisionMade:
    return DecisionMade(
        action=Action(action),
        rule_id=more.pop("rule_id", None),
        severity=Severity.INFO if action == "ALLOW" else Severity.WARN,
        explain=Explain(summary="", reason_code=more.pop("code", "DEFAULT_ALLOW")),
        policy=policy,
        **more,
    )


def layered(ref: PolicyRef, layer: Layer) -> LayeredPolicyRef:
    return LayeredPolicyRef(
        layer=layer,
        policy_id=ref.policy_id,
        policy_version=ref.policy_version,
        policy_hash=ref.policy_hash,
    )


BOTH = [layered(PACK, Layer.PACK), layered(USER, Layer.USER)]


def test_without_a_pack_there_is_none():
    assert recorded_pack(event("ALLOW", NO_POLICY)) is None
    assert recorded_pack(event("BLOCK", USER, rule_id="r", kernel=kernel("REFUSE"))) is None
    assert recorded_pack(event("ALLOW", USER, kernel=kernel("EXECUTE"))) is None
    assert recorded_pack(event("ALLOW", USER, policies=BOTH[1:])) is None


def test_the_pack_alone_is_known_by_what_it_said():
    found = recorded_pack(event("ALLOW", NO_POLICY, kernel=kernel("EXECUTE")))
    assert found is not None
    assert (found.ref, found.judgement.refusal) == (PACK, None)


def test_the_layers_of_a_call_are_those_beside_the_pack():
    found = recorded_decision(event("ALLOW", USER, policies=BOTH, kernel=kernel("EXECUTE")))
    assert found.pack is not None
    assert [each.layer for each in found.layers] == [Layer.USER]
    assert recorded_decision(event("BLOCK", PACK, code="no")).layers == ()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (event("BLOCK", PACK, code="too.much", kernel=kernel("REFUSE")), ("BLOCK", "too.much")),
        (event("BLOCK", PACK, code="LEGACY_REFUSED"), ("BLOCK", "LEGACY_REFUSED")),
        (
            event("THROTTLE", PACK, code="DEFERRED", backoff_ms=5, kernel=kernel("DEFER")),
            ("THROTTLE", "DEFERRED"),
        ),
        (
            event("BLOCK", USER, policies=BOTH, kernel=kernel("REFUSE", refusal_code="x")),
            ("BLOCK", "x"),
        ),
        (
            event("BLOCK", USER, policies=BOTH, kernel=kernel("ESCALATE")),
            ("REJECT_WITH_HINT", "HUMAN_REQUIRED"),
        ),
        (
            event(
                "ALLOW",
                USER,
                policies=BOTH,
                kernel=kernel("EXECUTE", basis=["confirmation:received"]),
            ),
            ("REJECT_WITH_HINT", "CONFIRMATION_REQUIRED"),
        ),
        (event("ALLOW", USER, policies=BOTH), None),
        (event("ALLOW", USER, policies=BOTH, kernel=kernel("REFUSE", divergence="NONE")), None),
    ],
)
def test_what_the_pack_said(told: DecisionMade, said: tuple[str, str] | None):
    found = recorded_pack(told)
    assert found is not None
    refusal = found.judgement.refusal
    assert (None if refusal is None else (refusal.action, refusal.reason_code)) == said
    asks = said is not None and said[1] in ("HUMAN_REQUIRED", "CONFIRMATION_REQUIRED")
    assert (found.judgement.requirement is not None) == asks
    if refusal is not None:
        assert refusal.backoff_ms == (None if told.backoff_ms is UNSET else told.backoff_ms)


def test_a_replay_keeps_what_the_pack_said():
    """The candidate adds a rule about another tool, so nothing changes."""
    candidate = compile_bundle(bundle(rule("deny", match={"tool_name": {"glob": ["other"]}})))
    said = [
        event("ALLOW", NO_POLICY, kernel=kernel("EXECUTE")),
        event("BLOCK", PACK, code="too.much", kernel=kernel("REFUSE", refusal_code="too.much")),
    ]
    run = RunReplay(Layering(candidate, {}.get).of_run([]))
    for number, told in enumerate(said, start=1):
        call = RecordedCall(
            run_id="run",
            call_id=f"c-{number}",
            seq=number,
            server_name="pay",
            tool_name="pay.out",
            args_hash="0" * 64,
            args={},
            identity=Identity(),
            wall_ms=0,
            mono_ms=0,
            decision=recorded_decision(told),
        )
        assert run.decide(call).change is Change.SAME
