"""Random policies and envelopes: the kernel agrees with a second one, and keeps its invariants."""

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel import naive
from tests.kernel.making import AT, FakeClock, Records, policy
from tests.kernel.naive import Opinion, Said
from tests.requirements import requirement

from subluminal.kernel import (
    Decision,
    Defer,
    Escalate,
    EscalateTo,
    Execute,
    IntentActor,
    IntentEnvelope,
    Kill,
    MemoryExecutionLedger,
    PolicyBundle,
    Refuse,
    RequestConfirmation,
    Rewrite,
    adjudicate,
    adjudicate_and_audit,
    adjudicate_with_deadline,
    adjudicate_with_trace,
    basis,
    build_envelope,
    decision_from_audit,
    effective_taint,
    is_known_basis,
    refuse,
    replay_envelope_from_audit,
    replay_verdict,
    taint_rank,
    with_payload,
)
from subluminal.kernel.basis import flat_basis

LEVELS = st.sampled_from(naive.RANKS)
SAYS = st.sampled_from(
    ["nothing"] * 8
    + ["EXECUTE", "REFUSE", "ESCALATE", "REQUEST_CONFIRMATION", "DEFER", "REWRITE"]
    + ["raise", "nonsense", "another intent", "raise taint", "wrong hash"]
)
OPINIONS = st.lists(st.builds(Opinion, SAYS, st.sampled_from(["a.no", "b.no"])), max_size=3)
PAYLOADS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1000, 1000)
    | st.sampled_from(["x", "é", "e\u0301", "\U0001f600"])
    | st.builds(lambda level: {"value": 1, "taint": level}, LEVELS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abé"), inner, max_size=3)
    ),
    max_leaves=6,
)
POLICIES = st.fixed_dictionaries(
    {
        "state": OPINIONS,
        "auth": OPINIONS,
        "business": OPINIONS,
        "minimum": LEVELS | st.just("ROOT"),
        "clean": st.booleans(),
        "default": st.sampled_from(["EXECUTE", "REFUSE"]),
    }
)
REASON = (basis("business", "rule_satisfied"),)


@st.composite
def envelopes(draw: st.DrawFn) -> IntentEnvelope:
    made = build_envelope(
        "order.submit",
        {"p": draw(PAYLOADS)},
        actor=IntentActor(draw(st.sampled_from(["llm", "user", "system"])), "s"),
        taint=draw(LEVELS),
        nonce="n",
        created_at=AT,
        origin=draw(st.sampled_from([None, "Human", "Retrieved", "ExternalAPI"])),
    )
    changed = draw(
        st.sampled_from([{}] * 6 + [{"version": 1}, {"intent_hash": "0" * 64}, {"nonce": "m"}])
    )
    return msgspec.structs.replace(made, **changed)


def guard_of(opinion: Opinion) -> Callable[[IntentEnvelope, Any], Any]:
    """The guard that an opinion describes."""

    def guard(envelope: IntentEnvelope, _state: Any) -> Any:
        match opinion.says:
            case "nothing":
                return None
            case "raise":
                raise LookupError(opinion.word)
            case "nonsense":
                return opinion.word
        return decision_of(opinion, envelope)

    return guard


def decision_of(opinion: Opinion, envelope: IntentEnvelope) -> Decision:
    rewritten = with_payload(envelope, envelope.payload | {"q": 1})
    raised = build_envelope(
        envelope.kind, envelope.payload, actor=envelope.actor, taint="SYSTEM", nonce="n",
        created_at=AT, origin=envelope.origin,
    )  # fmt: skip
    if opinion.says == "raise taint" and envelope.taint == "SYSTEM":
        raise LookupError("cannot be raised")
    return {
        "EXECUTE": Execute(REASON),
        "REFUSE": Refuse(refuse("STATE", opinion.word, "No."), REASON),
        "ESCALATE": Escalate(EscalateTo.HUMAN, "r", REASON),
        "REQUEST_CONFIRMATION": RequestConfirmation("p", REASON),
        "DEFER": Defer("s", 1, REASON),
        "REWRITE": Rewrite(rewritten, "r", REASON),
        "another intent": Rewrite(
            msgspec.structs.replace(
                raised,
                kind="order.cancel",
                taint=envelope.taint,
                intent_hash=naive.intent_hash(
                    msgspec.to_builtins(raised)
                    | {"kind": "order.cancel", "taint": str(envelope.taint)}
                ),
            ),
            "r",
        ),
        "raise taint": Rewrite(raised, "r"),
        "wrong hash": Rewrite(msgspec.structs.replace(rewritten, intent_hash="0"), "r"),
    }[opinion.says]


class Taints:
    """The taint policy that the data describes."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.described = described

    def minimum_for(self, kind: str, /) -> str:
        return str(self.described["minimum"])

    def requires_uncontaminated(self, kind: str) -> bool:
        return bool(self.described["clean"])


def policy_of(described: dict[str, Any]) -> PolicyBundle:
    phases = {
        name: [guard_of(each) for each in described[name]] for name in ("state", "auth", "business")
    }
    return policy(**phases, taint=Taints(described), default=described["default"])


def told(decision: Decision) -> Said:
    code = decision.refusal.code if isinstance(decision, Refuse) else None
    return Said(str(decision.kind), flat_basis(decision.basis), code)


def expected(envelope: IntentEnvelope, described: dict[str, Any], killed: bool) -> Said:
    said = dict(described)
    if envelope.taint == "SYSTEM":  # then nothing can be raised, and the guard gives up
        for phase in ("state", "auth", "business"):
            said[phase] = [
                Opinion("raise") if each.says == "raise taint" else each for each in said[phase]
            ]
    return naive.adjudicate(msgspec.to_builtins(envelope), said, killed)


@requirement("003:pure", "003:vocabulary", "003:untrusted-never-executes")
@settings(max_examples=400)
@given(envelopes(), POLICIES, st.booleans())
def test_the_kernel_agrees_with_the_oracle(
    envelope: IntentEnvelope, described: dict[str, Any], killed: bool
) -> None:
    bundle = policy_of(described)
    kill = Kill("k", AT) if killed else None
    decision = adjudicate(envelope, None, bundle, kill=kill)
    assert told(decision) == expected(envelope, described, killed)
    # Invariants of the seed, which the oracle shares with us and might get wrong as we do.
    assert all(map(is_known_basis, decision.basis))
    if decision.kind == "EXECUTE":
        assert envelope.version == 2
        assert not killed
        assert taint_rank(effective_taint(envelope)) >= taint_rank(described["minimum"])
    # Siblings decide alike, and so does the kernel when it is asked again.
    traced, steps = adjudicate_with_trace(envelope, None, bundle, kill=kill)
    assert traced == decision == adjudicate(envelope, None, bundle, kill=kill)
    assert [step.outcome for step in steps] == ["pass"] * (len(steps) - 1) + ["match"]
    assert decision == adjudicate_with_deadline(
        envelope, None, bundle, deadline_ms=1, clock=FakeClock(), kill=kill
    )


@requirement("003:replay-from-audit")
@settings(max_examples=150)
@given(envelopes(), POLICIES)
def test_what_is_on_record_replays_identically(
    envelope: IntentEnvelope, described: dict[str, Any]
) -> None:
    bundle, records = policy_of(described), Records()
    done = adjudicate_and_audit(
        envelope, None, bundle, sink=records, clock=FakeClock(), ledger=MemoryExecutionLedger()
    )
    for record in records.all:
        if record.envelope.get("version") != 2 or record.envelope["nonce"] == "m":
            continue
        if record.intent_hash == "0" * 64 or done.decision.kind == "REFUSE":
            continue
        again = adjudicate(replay_envelope_from_audit(record), None, bundle)
        assert replay_verdict(decision_from_audit(record), again) == "IDENTICAL"
