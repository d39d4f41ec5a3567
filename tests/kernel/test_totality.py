"""Whatever is forged and whatever a guard does: `adjudicate` answers, and the answer can be written."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.making import FakeClock, Records, envelope, policy
from tests.requirements import requirement

from subluminal.kernel import (
    Execute,
    IntentEnvelope,
    MemoryExecutionLedger,
    adjudicate,
    adjudicate_and_audit,
    adjudicate_with_trace,
    is_known_basis,
)


def knot() -> list[Any]:
    made: list[Any] = []
    made += [made, made]
    return made


def bomb() -> list[Any]:
    made: list[Any] = []
    for _ in range(200):
        made = [made, made]
    return made


def deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


class EvilDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError


ODD = [
    float("nan"),
    float("-inf"),
    "\ud800",
    {"\udfff": 1},
    {1: 1},
    2**4000,
    10**5000,
    b"x",
    (1, 2),
    {1},
    object(),
    EvilDict(a=1),
    Execute(),
    None,
    [],
]
odd = st.sampled_from(ODD) | st.builds(knot) | st.text() | st.integers() | st.floats()
members = st.sampled_from(IntentEnvelope.__struct_fields__)
forgeries = st.dictionaries(members, odd, max_size=4).map(
    lambda changed: msgspec.structs.replace(envelope(), **changed)
)


@requirement("003:pure")
@settings(max_examples=300)
@given(forgeries)
def test_forged_envelopes_are_refused(forged: Any) -> None:
    bundle = policy(default="EXECUTE")
    decision = adjudicate(forged, None, bundle)
    if decision.kind == "EXECUTE":  # only what the hash does not cover may differ
        assert decision == adjudicate(envelope(), None, bundle)
        assert forged.intent_hash == envelope().intent_hash
    msgspec.json.encode(decision)
    assert all(map(is_known_basis, decision.basis))
    records = Records()
    audited = adjudicate_and_audit(
        forged, None, bundle, sink=records, clock=FakeClock(), ledger=MemoryExecutionLedger()
    )
    assert audited.decision == decision
    msgspec.json.encode(records.all)


@pytest.mark.parametrize("make", [knot, bomb, deep])
def test_payloads_without_end_are_refused_in_bounded_time(make: Any) -> None:
    forged = msgspec.structs.replace(envelope(), payload=make())
    decision = adjudicate(forged, None, policy(default="EXECUTE"))
    assert decision.basis[-1].detail["phase"] == "schema"
    done = adjudicate_and_audit(forged, None, policy(), sink=Records(), clock=FakeClock())
    assert done.record.envelope["payload"] is None


def endless(given_: IntentEnvelope, state: Any) -> Any:
    return endless(given_, state)


def nested(given_: IntentEnvelope, state: Any) -> Any:
    return adjudicate(given_, state, policy(state=[endless]))


async def later(given_: IntentEnvelope, state: Any) -> Any:
    return Execute()


def tied(given_: IntentEnvelope, _state: Any) -> Any:
    given_.payload["self"] = given_.payload


def forced(given_: IntentEnvelope, _state: Any) -> Any:
    msgspec.structs.force_setattr(given_, "kind", "other")


def generator(_envelope: IntentEnvelope, _state: Any) -> Any:
    yield Execute()


class Nameless:
    """A guard that fails at whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __bool__(self) -> bool:
        raise RuntimeError

    def __call__(self, *_: Any) -> Any:
        raise Silent


class Silent(Exception):
    def __str__(self) -> str:
        raise RecursionError


def test_a_guard_without_a_name_is_refused_like_others() -> None:
    decision, steps = adjudicate_with_trace(envelope(), None, policy(state=[Nameless()]))
    assert decision.basis[-1].detail["errorName"] == "Silent"
    assert steps[-1].guard_name is None


def test_policies_and_switches_that_are_not_what_they_seem() -> None:
    class NoDefault:
        state_guards = auth_guards = business = ()
        taint = policy().taint

    class Equal(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            return True

    for bundle in (NoDefault(), policy(default=Equal("REFUSE"))):
        assert adjudicate(envelope(), None, bundle).kind == "REFUSE"  # type: ignore[arg-type]
    killed = adjudicate(envelope(), None, policy(default="EXECUTE"), kill=True)  # type: ignore[arg-type]
    assert killed.basis[0].category == "kill"


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("guard", [endless, nested, later, tied, forced, generator, 7, None, int])
@pytest.mark.parametrize("phase", ["state", "auth", "business"])
def test_no_guard_gets_out(phase: str, guard: Any) -> None:
    decision, _ = adjudicate_with_trace(
        envelope(),
        None,
        policy(**{phase: [guard]}, default="EXECUTE"),  # type: ignore[arg-type]
    )
    assert decision.kind == "REFUSE"
    assert decision.refusal.code == "guard_panic"
    msgspec.json.encode(decision)
