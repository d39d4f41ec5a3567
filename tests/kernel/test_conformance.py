"""The eight conformance checks find a pack that breaks each one."""

from itertools import count
from typing import Any

import msgspec
import pytest
from tests.kernel.making import Minimum, policy
from tests.kernel.test_adjudication import NO
from tests.kernel.test_packs import pack
from tests.requirements import requirement

from subluminal.kernel import (
    Check,
    CheckResult,
    Decision,
    Execute,
    IntentEnvelope,
    Pack,
    RequestConfirmation,
    Scenario,
    check_pack,
    conformance,
    constant,
    refuse,
)
from subluminal.kernel.decisions import Refuse


def faults(made: Pack, **given: Any) -> dict[str, str | None]:
    results = check_pack(made, **given)
    assert [result.check for result in results] == list(Check)
    return {result.check: result.detail for result in results if not result.passed}


def owned(**given: Any) -> Pack:
    """A pack with an auth guard, and what else is given."""
    return pack(policy=policy(auth=[constant(None)], **given))


def self_confirming(envelope: IntentEnvelope, _state: Any) -> Decision:
    return Execute() if envelope.payload.get("approvalToken") else RequestConfirmation("Sure?")


class Moody(Minimum):
    """A taint policy that forgets what it demanded."""

    def __init__(self) -> None:
        self.levels = count()

    def minimum_for(self, kind: str, /) -> str:
        return "TRUSTED" if next(self.levels) % 2 else "UNTRUSTED"


@requirement("003:pack-conformance")
def test_a_good_pack_passes_all_eight() -> None:
    scenarios = [
        Scenario("order.submit", {"b": [{"c": 1, "a": 2}], "a": 1}, {}),
        Scenario("order.submit", [1], {}),
    ]
    assert faults(owned(), scenarios=scenarios) == {}
    assert faults(owned(business=[constant(NO)])) == {}
    assert len(Check) == 8
    assert msgspec.to_builtins(CheckResult(Check.GUARD_ORDERING, True)) == {
        "check": "guard-ordering", "passed": True
    }  # fmt: skip


@pytest.mark.parametrize(
    ("made", "check", "says"),
    [
        (owned(business=[self_confirming]), Check.NO_PAYLOAD_SELF_CONFIRMATION, "approvalToken"),
        (owned(business=[constant(Refuse(refuse("STATE", "odd", "No.")))]), Check.BASIS_VOCABULARY_PURITY, "odd"),
        (owned(default="EXECUTE"), Check.DEFAULT_POLARITY, "EXECUTE"),
        (pack(), Check.UNTRUSTED_MUTATING_NEEDS_OWNER, "order.submit"),
    ],
)  # fmt: skip
def test_each_fault_is_found(made: Pack, check: Check, says: str) -> None:
    found = faults(made)
    assert list(found) == [check]
    assert says in str(found[check])


def test_a_pack_that_decides_by_mood_is_found() -> None:
    turns = count()

    def moody(_envelope: IntentEnvelope, _state: Any) -> Decision:
        return Execute() if next(turns) % 2 else NO

    assert Check.REPLAY_DETERMINISM in faults(owned(business=[moody]))
    forgetful = pack(policy=policy(taint=Moody(), business=[constant(Execute())]))
    assert Check.UNTRUSTED_NEVER_EXECUTES in faults(forgetful)


def test_a_kernel_that_errs_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two checks are about the kernel and the hash, so a pack alone cannot break them."""
    real = conformance.adjudicate_with_trace

    def backwards(*given: Any) -> Any:
        decision, steps = real(*given)
        return decision, steps[::-1]

    monkeypatch.setattr(conformance, "adjudicate_with_trace", backwards)
    monkeypatch.setattr(conformance, "with_payload", lambda envelope, _payload: None)
    monkeypatch.setattr(conformance._Probed, "confirms_itself", lambda _self: iter(()))
    assert list(faults(owned())) == [Check.INTENT_HASH_DETERMINISTIC, Check.GUARD_ORDERING]


def test_callers_may_say_more_about_a_pack() -> None:
    assert faults(pack(), read_only=["order.submit"]) == {}
    assert faults(owned(default="EXECUTE"), allow_default_execute=True) == {}
    assert faults(pack(policy=policy(taint=Minimum("TRUSTED")))) == {}
    assert faults(pack(policy=policy(taint=Minimum("ROOT")))) == {}
    stateful = owned(business=[lambda _e, state: NO if state == 7 else Execute((None,))])  # type: ignore[arg-type]
    rehydrated = msgspec.structs.replace(stateful, rehydrate_state=lambda _json: 7)
    assert faults(rehydrated) == {}
