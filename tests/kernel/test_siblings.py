"""Learning, shadow, rollout, contexts, rate limits, replay classes and the ledger in memory."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.making import AT, Broken, FakeClock, Watching, envelope, policy
from tests.kernel.test_adjudication import NO, cap, code_of
from tests.requirements import requirement

from subluminal.errors import SubluminalError
from subluminal.kernel import (
    Decision,
    Escalate,
    EscalateTo,
    Execute,
    ExecutionStatus,
    Kill,
    LedgerEntry,
    MemoryExecutionLedger,
    MemoryRateLimitStore,
    Refuse,
    ReplayMismatch,
    ReplayMismatchKind,
    Rewrite,
    Rollout,
    RuntimeContext,
    adjudicate,
    adjudicate_and_learn,
    adjudicate_with_shadow,
    basis,
    check_rate_limit,
    classify,
    classify_divergence,
    constant,
    kill_from_env,
    named,
    rate_limit_guard,
    refuse,
    replay_verdict,
)
from subluminal.kernel.learning import deciding_guard

REASON = basis("business", "rule_satisfied")


@requirement("003:learn")
def test_learning_gets_one_event_and_cannot_change_the_decision() -> None:
    watching, clock = Watching(), FakeClock()
    bundle = policy(business=[named("no", constant(NO))])
    decision = adjudicate_and_learn(
        envelope(), None, bundle, sink=watching, clock=clock, plan_fingerprint="f"
    )
    ((method, event),) = watching.seen
    assert method == "record_outcome"
    assert msgspec.to_builtins(event) == {
        "intentKind": "order.submit",
        "decisionKind": "REFUSE",
        "basisCodes": [f"{reason.category}:{reason.code}" for reason in decision.basis],
        "taint": "UNTRUSTED",
        "durationMs": 0.0,
        "intentHash": envelope().intent_hash,
        "at": AT,
        "guardId": "no",
        "planFingerprint": "f",
    } | {"basisCodes": event.basis_codes}
    again = adjudicate_and_learn(envelope(), None, bundle, sink=Broken(), clock=clock)  # type: ignore[arg-type]
    assert again == decision
    assert deciding_guard([]) is None


@requirement("003:shadow")
@pytest.mark.parametrize(
    ("legacy", "decision", "divergence"),
    [
        (True, Execute(), "NONE"),
        (True, Execute((REASON,)), "BASIS_ONLY"),
        (False, NO, "BASIS_ONLY"),
        (False, Refuse(NO.refusal), "NONE"),
        (True, NO, "DECISION_KIND"),
        (False, Execute(), "DECISION_KIND"),
        (True, Escalate(EscalateTo.HUMAN, "r"), "DECISION_KIND"),
        (True, Rewrite(envelope(), "r"), "PAYLOAD_REWRITE"),
        (False, Rewrite(envelope(), "r"), "PAYLOAD_REWRITE"),
        (Rewrite(envelope(), "r"), Rewrite(envelope(), "r"), "NONE"),
        (NO, NO, "NONE"),
        (Execute((REASON,)), NO, "DECISION_KIND"),
        (Execute(), Execute((REASON,)), "BASIS_ONLY"),
        ("yes", Execute(), "DECISION_KIND"),
    ],
)
def test_divergences_have_four_classes(legacy: Any, decision: Decision, divergence: str) -> None:
    assert classify_divergence(legacy, decision) == divergence


@requirement("003:shadow")
def test_shadow_asks_both() -> None:
    bundle, watching = policy(business=[cap], default="EXECUTE"), Watching()
    result = adjudicate_with_shadow(
        envelope({"qty": 9}), None, bundle, legacy=lambda: True, metrics=watching
    )
    (event,) = watching.of("record_shadow_divergence")
    assert (event.intent_kind, event.divergence) == ("order.submit", "PAYLOAD_REWRITE")
    said = adjudicate(envelope(), None, bundle)
    adjudicate_with_shadow(envelope(), None, bundle, legacy=lambda: said, metrics=watching)
    assert len(watching.seen) == 1
    assert (result.legacy, result.decision.kind, result.divergence) == (
        True, "REWRITE", "PAYLOAD_REWRITE"
    )  # fmt: skip


@requirement("003:rollout", "003:variables")
def test_lists_say_what_is_enforced() -> None:
    rollout = Rollout.from_env({"SUB_KERNEL_SHADOW": " a , b,", "SUB_KERNEL_ENFORCE": "b,typo"})
    assert [rollout.mode_of(kind) for kind in "abc"] == ["shadow", "enforce", "off"]
    assert rollout.unknown(["a", "b"]) == ["typo"]
    every = Rollout.from_env({"S": "*", "E": "x"}, shadow_var="S", enforce_var="E")
    assert [every.mode_of(kind) for kind in "xy"] == ["enforce", "shadow"]
    assert Rollout.from_env({"SUB_KERNEL_ENFORCE": "*"}).mode_of("x") == "enforce"
    assert every.unknown(["x"]) == []
    assert Rollout.from_env({}).mode_of("x") == "off"


@requirement("003:kill-switch")
@pytest.mark.parametrize("text", ["1", "true", " YES ", "On"])
def test_a_variable_pulls_the_switch(text: str) -> None:
    assert kill_from_env({"SUB_KILL_SWITCH": text}, at=AT) == Kill("SUB_KILL_SWITCH is set", AT)


@pytest.mark.parametrize("environ", [{}, {"SUB_KILL_SWITCH": ""}, {"SUB_KILL_SWITCH": "0"}])
def test_other_values_do_not(environ: dict[str, str]) -> None:
    assert kill_from_env(environ, at=AT) is None
    assert kill_from_env(environ | {"MINE": "1"}, "MINE", at=AT) is not None


@requirement("003:kill-context")
def test_a_context_has_a_switch_of_its_own() -> None:
    one, other = RuntimeContext("a"), RuntimeContext("b")
    one.set_kill_switch(Kill("drill", AT))
    assert (one.is_killed(), other.is_killed()) == (True, False)
    one.set_kill_switch(None)
    assert not one.is_killed()


@requirement("003:rate-limit", "003:resource-limits")
def test_a_window_counts_and_a_rollback_touches_its_own_window_only() -> None:
    clock, watching = FakeClock(), Watching()
    store = MemoryRateLimitStore(clock)
    checks = [
        check_rate_limit(store, "k", window_ms=100, max=2, metrics=watching) for _ in range(3)
    ]
    (event,) = watching.of("record_resource_limit")
    assert (event.resource, event.limit, event.observed) == ("k", 2, 3)
    assert [(check.count, check.exceeded) for check in checks] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    checks[2].rollback()
    checks[2].rollback()
    assert check_rate_limit(store, "k", window_ms=100, max=2).count == 3
    assert check_rate_limit(store, "other", window_ms=100, max=2).count == 1
    clock.ms = 100
    assert check_rate_limit(store, "k", window_ms=100, max=2).count == 1
    checks[1].rollback()
    assert check_rate_limit(store, "k", window_ms=100, max=2).count == 2


@requirement("003:rate-limit")
def test_the_guard_reads_the_count_from_the_state() -> None:
    guard = rate_limit_guard(count=lambda _e, state: state, max=2)
    bundle = policy(business=[guard], default="EXECUTE")
    for count, kind in ((None, "EXECUTE"), (2, "EXECUTE"), (3, "REFUSE")):
        assert adjudicate(envelope(), count, bundle).kind == kind
    refused = adjudicate(envelope(), 3, bundle)
    assert code_of(refused) == "rate_limit_exceeded"
    assert refused.basis[-1] == basis(
        "business", "rule_violated", rule="rate_limit", count=3, max=2
    )
    assert code_of(adjudicate(envelope(), float("nan"), bundle)) == "guard_panic"


@requirement("003:replay-classes")
def test_a_decision_is_classified_against_another() -> None:
    """MULTIRUNTIME_CONFORMANCE 9: classify."""
    other = Refuse(refuse("STATE", "other", "No."), NO.basis)
    detailed = Refuse(NO.refusal, (basis("business", "rule_satisfied", other=1),) * 2)
    drift = Refuse(
        NO.refusal, (basis("auth", "scope_insufficient"), basis("auth", "identity_missing"))
    )
    assert classify(NO, NO) is None
    assert classify(NO, detailed) is None
    assert classify(NO, Execute(NO.basis)) == ReplayMismatch(ReplayMismatchKind.DECISION_KIND)
    assert classify(NO, drift) == ReplayMismatch(
        ReplayMismatchKind.BASIS_DRIFT,
        ("business:rule_satisfied",),
        ("auth:identity_missing", "auth:scope_insufficient"),
    )
    assert classify(NO, other) == ReplayMismatch(ReplayMismatchKind.REFUSAL_CODE_DRIFT)
    assert [replay_verdict(NO, actual) for actual in (NO, drift, other, Execute())] == [
        "IDENTICAL", "BASIS_ONLY", "BASIS_ONLY", "DECISION_CHANGED"
    ]  # fmt: skip


@requirement("003:ledger")
@given(st.lists(st.sampled_from(["claim", "release", "done"]), max_size=12))
def test_a_hash_has_one_holder_at_a_time(operations: list[str]) -> None:
    ledger, held = MemoryExecutionLedger(), False
    entry = LedgerEntry("h", AT, "s", "k")
    for operation in operations:
        if operation == "claim":
            assert (ledger.claim(entry) is None) is not held
            held = True
        elif operation == "release":
            ledger.release("h")
            held = False
        elif held:
            ledger.finish("h", ExecutionStatus.DONE)
            found = ledger.check("h")
            assert found is not None
            assert found.status == "done"
        else:
            with pytest.raises(SubluminalError, match="not claimed"):
                ledger.finish("h", ExecutionStatus.DONE)
        assert (ledger.check("h") is not None) is held
