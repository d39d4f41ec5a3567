"""Values that lie about themselves, and guards that change what they judge: nothing of it executes."""

import datetime
import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.canonical.values import double_values
from tests.kernel.making import FakeClock, Minimum, Records, Watching, envelope, policy
from tests.requirements import requirement

from subluminal.canonical import MAX_DEPTH, AmbiguousJSON, Profile, encode
from subluminal.kernel import (
    Basis,
    Check,
    Confirmation,
    Decision,
    Defer,
    Escalate,
    Execute,
    IntentActor,
    IntentEnvelope,
    MemoryExecutionLedger,
    Origin,
    Pack,
    Plan,
    Refusal,
    Refuse,
    RequestConfirmation,
    Rewrite,
    RuntimeContext,
    Scenario,
    Taint,
    TaintedValue,
    adjudicate,
    adjudicate_and_audit,
    adjudicate_with_deadline,
    adjudicate_with_trace,
    build_envelope,
    check_pack,
    collect_field_taints,
    constant,
    is_known_basis,
    sha256_canonical,
    static_planner,
)


class OtherHash(str):
    """A string that no dictionary finds."""

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return self is other


class Liar(str):
    """A string that is equal to everything, with the hash of another."""

    def __hash__(self) -> int:
        return hash("business")

    def __eq__(self, other: object) -> bool:
        return True


class LyingList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield "lie"

    def __len__(self) -> int:
        return 1


class Endless(Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        return 1

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"key-{number}"

    def __len__(self) -> int:
        return 1


class OddInt(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__

    def __lt__(self, other: object) -> bool:
        return True


def panic_of(decision: Decision) -> Any:
    assert isinstance(decision, Refuse)
    assert decision.refusal.code == "guard_panic"
    return decision.basis[-1].detail


@requirement("003:intent-hash")
@given(
    double_values,
    st.sampled_from([None, *Origin]),
    st.none() | st.dictionaries(st.text("aé"), st.text("b\u0301"), max_size=2),
    st.none() | st.text("rô"),
)
@example(payload=None, origin=None, refs=None, role="ô")
def test_the_hash_is_that_of_the_canonical_members(
    payload: Any, origin: Any, refs: Any, role: str | None
) -> None:
    """However it is derived: plain numbers and ASCII take a shorter way."""
    actor = IntentActor("user", "s", role)
    try:
        covered = {
            "version": 2,
            "kind": "order.submit",
            "payload": payload,
            "nonce": "n-1",
            "actor": {"principal": "user", "sessionId": "s"}
            | ({"role": role} if role is not None else {}),
            "taint": "TRUSTED",
        }
        covered |= {} if origin is None else {"origin": str(origin)}
        covered |= {} if refs is None else {"resourceRefs": refs}
        wanted = sha256_canonical(covered)
    except AmbiguousJSON:
        with pytest.raises(AmbiguousJSON):
            envelope(payload, origin=origin, resource_refs=refs, actor=actor, taint="TRUSTED")
        return
    made = build_envelope(
        "order.submit", payload, actor=actor, taint="TRUSTED", nonce="n-1", created_at="t",
        resource_refs=refs, origin=origin,
    )  # fmt: skip
    assert made.intent_hash == wanted


def test_subclasses_become_what_they_hold() -> None:
    made = envelope({OtherHash("a"): OddInt(5), "b": LyingList(["true"])})
    assert msgspec.json.encode(made.payload) == b'{"a":5,"b":["true"]}'
    assert {type(name) for name in made.payload} == {str}
    assert (type(made.payload["a"]), type(made.payload["b"])) == (int, list)


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        ({OtherHash("a"): 1, "a": 2}, "twice"),
        ({"x": {1: 2}}, "not a string"),
        (Endless(), "more than 1000000"),
    ],
    ids=["two keys of one text", "a key that is a number", "a mapping without end"],
)
def test_mappings_that_are_not_objects_are_not_built(payload: Any, says: str) -> None:
    with pytest.raises(AmbiguousJSON, match=says):
        envelope(payload)


@requirement("003:field-taints")
def test_a_key_that_lies_does_not_hide_a_level() -> None:
    """The text of the keys is hashed, so the hash is right; `get("taint")` finds nothing."""
    honest = envelope({"note": {"value": "hi", "taint": "UNTRUSTED"}}, taint="SYSTEM")
    hidden = {"note": {"value": "hi", OtherHash("taint"): "UNTRUSTED"}}
    forged = msgspec.structs.replace(honest, payload=hidden)
    bundle = policy(taint=Minimum("TRUSTED"), default="EXECUTE")
    assert panic_of(adjudicate(forged, None, bundle))["phase"] == "schema"


ALIKE: list[tuple[Any, Any]] = [
    (None, float("nan")),
    ([1], (1,)),
    ({"1": 2}, {1: 2}),
    ("YQ==", b"a"),
    ("2026-01-01", datetime.date(2026, 1, 1)),
    ({"value": 1, "taint": "TRUSTED"}, TaintedValue(1, Taint.TRUSTED)),
    ("x", Liar("x")),
    (5, OddInt(5)),
]


@requirement("003:pure")
@pytest.mark.parametrize(
    ("was", "becomes"), ALIKE, ids=[type(after).__name__ for _, after in ALIKE]
)
@pytest.mark.parametrize("when", ["before", "by a guard", "after the guards"])
def test_a_value_that_json_writes_alike_is_still_another(was: Any, becomes: Any, when: str) -> None:
    made, ledger = envelope({"field": was}), MemoryExecutionLedger()

    def change(*_: Any) -> Any:
        made.payload["field"] = becomes

    bundle = policy(business=[change] if when == "by a guard" else [], default="EXECUTE")
    if when == "before":
        change()
    done = adjudicate_and_audit(
        made, None, bundle, sink=Records(), clock=FakeClock(), ledger=ledger,
        resolve_resource_version=change if when == "after the guards" else None,
    )  # fmt: skip
    assert panic_of(done.decision)["phase"] == "schema"
    assert ledger.check(made.intent_hash) is None


@requirement("003:audit")
def test_what_executes_has_its_hash_when_it_is_claimed() -> None:
    """The version of a resource is asked after the guards; a confirmation asks the taint policy."""
    asked: list[str] = []

    class Changing(Minimum):
        def minimum_for(self, kind: str, /) -> Taint | str:
            asked.append(kind)
            if len(asked) == 2:  # once by the gate, once for the confirmation
                made.payload["qty"] = 1000
            return "UNTRUSTED"

    made, ledger = envelope(), MemoryExecutionLedger()
    bundle = policy(business=[constant(RequestConfirmation("Sure?"))], taint=Changing())
    done = adjudicate_and_audit(
        made, None, bundle, sink=Records(), clock=FakeClock(), ledger=ledger,
        confirmation=Confirmation(made.intent_hash, "t"),
    )  # fmt: skip
    assert "after it was judged" in panic_of(done.decision)["message"]
    assert done.record.envelope["payload"] == {"qty": 1}
    assert ledger.check(made.intent_hash) is None


def test_a_forced_actor_is_another_envelope() -> None:
    def promote(given_: IntentEnvelope, _state: Any) -> None:
        msgspec.structs.force_setattr(given_.actor, "principal", "system")

    decision = adjudicate(
        envelope(actor=IntentActor("llm", "s")), None, policy(auth=[promote], default="EXECUTE")
    )
    assert "changed the envelope" in panic_of(decision)["message"]


def test_guards_asked_again_while_they_run_end() -> None:
    guards: list[Any] = []

    def grow(_envelope: IntentEnvelope, _state: Any) -> None:
        guards.append(grow)

    guards.append(grow)
    decision, steps = adjudicate_with_trace(envelope(), None, policy(business=guards))
    assert decision.kind == "REFUSE"
    assert [step.phase for step in steps].count("business") == 1


def test_a_guard_that_sleeps_is_late() -> None:
    class Real:
        def now_iso(self) -> str:
            return "t"

        def mono_ms(self) -> float:
            return time.monotonic() * 1000

    def sleepy(_envelope: IntentEnvelope, _state: Any) -> Execute:
        began = time.monotonic()
        while time.monotonic() - began < 0.02:
            pass
        return Execute()

    decision = adjudicate_with_deadline(
        envelope(), None, policy(business=[sleepy]), deadline_ms=10, clock=Real()
    )
    assert isinstance(decision, Refuse)
    assert decision.refusal.code == "kernel_deadline_exceeded"


class Mute:
    """An object that fails at whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RuntimeError


def test_what_answers_nothing_is_refused_and_on_record() -> None:
    watching = Watching()
    context = RuntimeContext(metrics=watching, learning=watching)
    forged: Any = Mute()
    done = adjudicate_and_audit(
        forged, None, policy(), sink=Records(), clock=FakeClock(), context=context,
        ledger=MemoryExecutionLedger(),
    )  # fmt: skip
    assert isinstance(done.decision, Refuse)
    assert done.decision.refusal.code == "schema_version_unsupported"
    assert watching.of("record_decision")[0].intent_hash == ""


@requirement("003:vocabulary")
@pytest.mark.parametrize(
    "reason", [Basis(Liar("hacked"), "rule_satisfied"), Basis("business", Liar("hacked"))]
)
def test_a_word_that_lies_is_not_in_the_vocabulary(reason: Basis) -> None:
    assert not is_known_basis(reason)
    decision = adjudicate(envelope(), None, policy(business=[constant(Execute((reason,)))]))
    assert "BASIS_CODES" in panic_of(decision)["message"]


class Subclass(Refusal):
    """A refusal with more members."""

    more: Any = None


odd = st.sampled_from(
    [None, 0, -1, 2**70, 1.5, float("nan"), "", "x", "\ud800", "human", "REFUSE", b"x", (), [], {},
     object(), Liar("x"), Refusal("AUTH", "c", "u"), Subclass("AUTH", "c", "u"),  # type: ignore[arg-type]
     Basis("state", "transition_valid"), (Basis("state", "transition_valid"),),
     [Basis("business", "rule_satisfied", {"n": float("nan")})], (None,), envelope(),
     envelope({"qty": 2}), envelope(taint="SYSTEM")]
)  # fmt: skip
answers = (
    st.builds(Execute, odd)
    | st.builds(Refuse, odd, odd)
    | st.builds(Escalate, odd, odd, odd)
    | st.builds(RequestConfirmation, odd, odd)
    | st.builds(Defer, odd, odd, odd)
    | st.builds(Rewrite, odd, odd, odd)
    | odd
)


@requirement("003:pure")
@given(st.lists(answers, min_size=1, max_size=3), st.sampled_from(["state", "auth", "business"]))
def test_whatever_guards_return_the_answer_can_be_written(said: list[Any], phase: str) -> None:
    bundle = policy(**{phase: [lambda _e, _s, each=each: each for each in said]})  # type: ignore[arg-type]
    decision = adjudicate(envelope(), None, bundle)
    assert all(map(is_known_basis, decision.basis))
    msgspec.json.encode(decision)
    done = adjudicate_and_audit(envelope(), None, bundle, sink=Records(), clock=FakeClock())
    msgspec.json.encode(done.record)


@pytest.mark.parametrize(
    "make",
    [
        lambda mute: mute,
        lambda mute: Execute(mute),
        lambda mute: Execute((mute,)),
        lambda mute: Execute((Basis("state", "transition_valid", {"detail": mute}),)),
        lambda mute: Refuse(mute),
        lambda mute: Refuse(Refusal("AUTH", mute, "u")),  # type: ignore[arg-type]
        lambda mute: Escalate(mute, "r"),
        lambda mute: RequestConfirmation(mute),
        lambda mute: Defer("s", mute),
        lambda mute: Rewrite(mute, "r"),
    ],
)
def test_answers_that_answer_nothing_are_a_panic(make: Any) -> None:
    panic_of(adjudicate(envelope(), None, policy(business=[lambda _e, _s: make(Mute())])))


def bomb() -> list[Any]:
    made: list[Any] = []
    for _ in range(60):
        made = [made, made]
    return made


def test_levels_are_collected_in_bounded_time() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(AmbiguousJSON, match="deeper"):
        collect_field_taints(knot)
    with pytest.raises(AmbiguousJSON, match="more than"):
        collect_field_taints(bomb())


def test_a_guard_that_makes_the_payload_endless_and_rewrites_it_is_a_panic() -> None:
    def explode(given_: IntentEnvelope, _state: Any) -> Decision:
        given_.payload["bomb"] = bomb()
        return Rewrite(envelope({"qty": 0}), "smaller")

    decision = adjudicate(envelope(), None, policy(business=[explode]))
    assert panic_of(decision)["errorName"] == "NotADecision"


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner, "b": 1}])
def test_deep_payloads_take_the_same_way_in_every_check(wrap: Any) -> None:
    payload: Any = 1
    for _ in range(MAX_DEPTH - 2):
        payload = wrap(payload)
    made = envelope({"payload": payload})
    assert adjudicate(made, None, policy(default="EXECUTE")).kind == "EXECUTE"
    covered = {"payload": made.payload, "version": 2}
    assert encode(covered, Profile.JCS_NFC)
    pack = Pack(
        "p",
        "1",
        ["order.submit"],
        policy(auth=[constant(None)]),
        static_planner(Plan([], [])),
        ["c"],
    )
    results = check_pack(pack, scenarios=[Scenario("order.submit", {"payload": payload}, None)])
    assert {result.check: result.passed for result in results}[Check.INTENT_HASH_DETERMINISTIC]
    with pytest.raises(AmbiguousJSON, match="deeper"):
        envelope({"payload": wrap(wrap(payload))})
