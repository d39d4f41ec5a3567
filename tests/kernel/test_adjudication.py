"""`adjudicate`: the order of the gates, the reasons, the trace and the deadline."""

import dataclasses
from typing import Any

import msgspec
import pytest
from tests.kernel.making import (
    AT,
    FakeClock,
    Minimum,
    Records,
    Uncontaminated,
    envelope,
    policy,
)
from tests.requirements import requirement

from subluminal.kernel import (
    Basis,
    Decision,
    Defer,
    Escalate,
    Execute,
    IntentActor,
    IntentEnvelope,
    Kill,
    MemoryExecutionLedger,
    Refuse,
    RequestConfirmation,
    Rewrite,
    TraceStep,
    adjudicate,
    adjudicate_and_audit,
    adjudicate_with_deadline,
    adjudicate_with_trace,
    basis,
    constant,
    named,
    refuse,
    tainted,
    with_payload,
)
from subluminal.kernel.basis import flat_basis

KILL = Kill("drill", AT)
PASSES = (
    "schema:version_supported",
    "state:transition_valid",
    "taint:level_permitted",
    "auth:scope_sufficient",
    "business:rule_satisfied",
)
RULE = basis("business", "rule_satisfied", rule="mine")
NO = Refuse(refuse("BUSINESS_RULE", "mine.no", "No."), (RULE,))


def silent(_envelope: IntentEnvelope, _state: Any) -> None:
    return None


def code_of(decision: Decision) -> str | None:
    return decision.refusal.code if isinstance(decision, Refuse) else None


@requirement("003:kill-switch")
def test_the_kill_switch_comes_before_everything() -> None:
    """Seed 003: engages BEFORE the schema-version gate."""
    decision = adjudicate(None, None, None, kill=KILL)  # type: ignore[arg-type]
    assert code_of(decision) == "kill_switch_active"
    assert decision.basis == (basis("kill", "active", reason="drill", toggledAt=AT),)


@requirement("003:version-gate")
@pytest.mark.parametrize("version", [0, 1, 3, "2", None, True, 2.0, 10**400, float("nan")])
def test_an_unknown_version_never_executes(version: Any) -> None:
    made = msgspec.structs.replace(envelope(), version=version)
    decision = adjudicate(made, None, policy(default="EXECUTE"))
    assert code_of(decision) == "schema_version_unsupported"
    assert flat_basis(decision.basis) == ("schema:version_unsupported",)
    assert decision.basis[0].detail["supported"] == 2
    msgspec.json.encode(decision)


@pytest.mark.parametrize("value", [None, {}, 7, object(), "envelope"])
def test_what_is_not_an_envelope_has_no_version(value: Any) -> None:
    assert (
        code_of(adjudicate(value, None, policy(default="EXECUTE"))) == "schema_version_unsupported"
    )


@requirement("003:hash-checked")
def test_a_changed_envelope_does_not_have_its_hash() -> None:
    made = msgspec.structs.replace(envelope(), payload={"qty": 1000})
    decision = adjudicate(made, None, policy(default="EXECUTE"))
    assert isinstance(decision, Refuse)
    assert (decision.refusal.kind, decision.refusal.code) == ("SECURITY", "intent_hash_mismatch")
    assert flat_basis(decision.basis) == (
        "schema:version_supported",
        "schema:intent_hash_mismatch",
    )


@pytest.mark.parametrize(
    ("default", "kind", "code"), [("EXECUTE", "EXECUTE", None), ("REFUSE", "REFUSE", "default_deny"),
                                  ("MAYBE", "REFUSE", "default_deny")]
)  # fmt: skip
def test_the_default_has_the_last_word(default: str, kind: str, code: str | None) -> None:
    bundle = policy(state=[silent], auth=[silent], business=[silent], default=default)
    decision = adjudicate(envelope(), None, bundle)
    assert (decision.kind, code_of(decision)) == (kind, code)
    assert flat_basis(decision.basis) == PASSES


@pytest.mark.parametrize(("phase", "passes"), [("state", 1), ("auth", 3), ("business", 4)])
def test_what_passed_stands_before_the_reasons_of_a_guard(phase: str, passes: int) -> None:
    bundle = policy(**{phase: [silent, constant(NO), constant(Execute())]}, default="EXECUTE")  # type: ignore[arg-type]
    decision = adjudicate(envelope(), None, bundle)
    assert code_of(decision) == "mine.no"
    assert decision.basis[passes:] == (RULE,)
    assert flat_basis(decision.basis[:passes]) == PASSES[:passes]


@requirement("003:untrusted-never-executes")
@pytest.mark.parametrize("early", [False, True], ids=["no guard", "a state guard says EXECUTE"])
def test_untrusted_never_executes_where_more_is_demanded(early: bool) -> None:
    state = [constant(Execute((RULE,)))] if early else []
    bundle = policy(state=state, taint=Minimum("TRUSTED"), default="EXECUTE")
    decision = adjudicate(envelope(), None, bundle)
    assert code_of(decision) == "taint_level_insufficient"
    assert decision.basis[-1] == basis(
        "taint", "level_insufficient", actual="UNTRUSTED", kind="order.submit"
    )
    assert adjudicate(envelope(taint="TRUSTED"), None, bundle).kind == "EXECUTE"


@requirement("003:field-taints")
def test_an_untrusted_field_counts_as_the_whole_payload() -> None:
    made = envelope({"note": tainted("hi", "UNTRUSTED")}, taint="SYSTEM")
    bundle = policy(taint=Minimum("TRUSTED"), default="EXECUTE")
    assert code_of(adjudicate(made, None, bundle)) == "taint_level_insufficient"


@requirement("003:guard-order")
def test_the_taint_gate_is_asked_before_auth() -> None:
    asked: list[str] = []
    bundle = policy(
        auth=[lambda _e, _s: asked.append("auth")],  # type: ignore[func-returns-value]
        taint=Minimum("SYSTEM"),
    )
    adjudicate(envelope(), None, bundle)
    assert asked == []


@pytest.mark.parametrize(("origin", "kind"), [("Retrieved", "REFUSE"), ("ExternalAPI", "REFUSE"),
                                              ("Human", "EXECUTE"), (None, "EXECUTE")])  # fmt: skip
def test_contaminated_origins_may_not_propose_some_kinds(origin: str | None, kind: str) -> None:
    bundle = policy(taint=Uncontaminated(), default="EXECUTE")
    decision = adjudicate(envelope(origin=origin), None, bundle)
    assert decision.kind == kind
    if kind == "REFUSE":
        assert code_of(decision) == "taint_level_insufficient"
        assert decision.basis[-1].code == "propagation_violation"
    assert adjudicate(envelope(origin=origin, kind="other"), None, bundle).kind == "EXECUTE"


@requirement("003:guard-order")
def test_a_trace_has_every_step_and_ends_with_the_match() -> None:
    first = named("first", lambda _e, _s: None)
    bundle = policy(state=[first], business=[silent, lambda _e, _s: NO])
    decision, steps = adjudicate_with_trace(envelope(), None, bundle)
    assert decision == adjudicate(envelope(), None, bundle)
    assert steps == [
        TraceStep("kill", "pass"),
        TraceStep("schema", "pass"),
        TraceStep("state", "pass", 0, "first"),
        TraceStep("taint", "pass"),
        TraceStep("business", "pass", 0, "silent"),
        TraceStep("business", "match", 1),
    ]
    assert msgspec.to_builtins(steps[2])["guardName"] == "first"


@pytest.mark.parametrize(
    ("made", "bundle", "kill", "last"),
    [
        (envelope(), policy(), KILL, TraceStep("kill", "match")),
        (None, policy(), None, TraceStep("schema", "match")),
        (envelope(), policy(taint=Minimum("SYSTEM")), None, TraceStep("taint", "match")),
        (envelope(), policy(), None, TraceStep("default", "match")),
        (envelope(), policy(state=[constant(Execute())], taint=Minimum("SYSTEM")), None,
         TraceStep("taint", "match")),
    ],
)  # fmt: skip
def test_gates_are_steps_too(made: Any, bundle: Any, kill: Kill | None, last: TraceStep) -> None:
    _, steps = adjudicate_with_trace(made, None, bundle, kill=kill)
    assert steps[-1] == last
    assert [step.outcome for step in steps[:-1]] == ["pass"] * (len(steps) - 1)


def cap(envelope: IntentEnvelope, _state: Any) -> Decision | None:
    if envelope.payload["qty"] <= 5:
        return None
    return Rewrite(
        with_payload(envelope, {"qty": 5}), "capped", (basis("business", "quantity_capped"),)
    )


def rewriting(**changed: Any) -> Any:
    """A guard that rewrites to an envelope built with these changes."""
    return lambda _e, _s: Rewrite(envelope(**{"payload": {"qty": 0}} | changed), "r", ())


@requirement("003:rewrite-scope")
def test_a_rewrite_of_the_same_intent_stands() -> None:
    decision = adjudicate(envelope({"qty": 9}), None, policy(business=[cap]))
    assert isinstance(decision, Rewrite)
    assert decision.rewritten.payload == {"qty": 5}
    assert decision.basis[-1].code == "quantity_capped"


@requirement("003:rewrite-scope")
@pytest.mark.parametrize(
    ("changed", "code", "reason"),
    [
        ({"kind": "order.cancel"}, "guard_panic", "kernel:guard_panic"),
        ({"actor": IntentActor("user", "s-1")}, "guard_panic", "kernel:guard_panic"),
        ({"nonce": "n-2"}, "guard_panic", "kernel:guard_panic"),
        ({"resource_refs": {"order": "8"}}, "guard_panic", "kernel:guard_panic"),
        ({"taint": "TRUSTED"}, "taint_level_insufficient", "taint:propagation_violation"),
    ],
)
def test_a_rewrite_is_never_another_action(changed: Any, code: str, reason: str) -> None:
    """Seed 003: REWRITE scope; kernel.md: another kind, actor or nonce, and raised taint."""
    decision = adjudicate(envelope(), None, policy(business=[rewriting(**changed)]))
    assert code_of(decision) == code
    assert flat_basis(decision.basis)[-1] == reason


def test_a_rewrite_with_a_wrong_hash_is_refused() -> None:
    wrong = msgspec.structs.replace(envelope(), payload={"qty": 0})
    decision = adjudicate(envelope(), None, policy(business=[constant(Rewrite(wrong, "r"))]))
    assert code_of(decision) == "intent_hash_mismatch"
    lost: Any = Rewrite(None, "r")  # type: ignore[arg-type]
    assert code_of(adjudicate(envelope(), None, policy(business=[constant(lost)]))) == "guard_panic"


def test_a_rewrite_cannot_hide_where_an_intent_came_from() -> None:
    made = envelope(origin="Retrieved")
    clean, same = rewriting(origin="Human"), rewriting(origin="Retrieved")
    assert code_of(adjudicate(made, None, policy(business=[clean]))) == "taint_level_insufficient"
    assert adjudicate(made, None, policy(business=[same])).kind == "REWRITE"


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ({"notes": [tainted("buy", "UNTRUSTED")]}, "REWRITE"),
        ({"notes": [tainted("buy", "TRUSTED")]}, "REFUSE"),
        ({"notes": ["buy"]}, "REFUSE"),
        ({"notes": ["[REDACTED]"]}, "REWRITE"),
        ({"notes": [tainted("[REDACTED]", "TRUSTED")]}, "REWRITE"),
        ({"notes": []}, "REWRITE"),
        ({"notes": "none"}, "REWRITE"),
        ({}, "REWRITE"),
    ],
)
def test_a_rewrite_may_redact_a_field_but_not_launder_it(after: Any, kind: str) -> None:
    """Seed 003 allows to redact UNTRUSTED content; the same content stays UNTRUSTED."""
    made = envelope({"notes": [tainted("buy", "UNTRUSTED")]}, taint="TRUSTED")
    guard = constant(Rewrite(with_payload(made, after), "redacted"))
    decision = adjudicate(made, None, policy(state=[guard]))
    assert decision.kind == kind
    if kind == "REFUSE":
        assert decision.basis[-1].detail == {"field": "notes.0"}


@requirement("003:deadline")
@pytest.mark.parametrize("deadline_ms", [0, -1, float("nan"), float("-inf")])
def test_a_deadline_that_has_passed_refuses_at_once(deadline_ms: float) -> None:
    bundle = policy(state=[pytest.fail], default="EXECUTE")
    decision = adjudicate_with_deadline(
        envelope(), None, bundle, deadline_ms=deadline_ms, clock=FakeClock()
    )
    assert code_of(decision) == "kernel_deadline_exceeded"
    assert flat_basis(decision.basis) == ("deadline:exceeded",)
    msgspec.json.encode(decision)


@requirement("003:deadline")
@pytest.mark.parametrize("slow", ["state", "taint", "business"])
def test_the_clock_is_asked_before_each_guard_and_at_the_end(slow: str) -> None:
    clock = FakeClock()
    asked: list[str] = []

    def guard(phase: str) -> Any:
        def ask(_envelope: IntentEnvelope, _state: Any) -> None:
            asked.append(phase)
            clock.ms += 10 if phase == slow else 0

        return ask

    class Slow(Minimum):
        def minimum_for(self, kind: str, /) -> str:
            guard("taint")(None, None)
            return "UNTRUSTED"

    bundle = policy(
        state=[guard("state")], taint=Slow(), auth=[guard("auth")], business=[guard("business")],
        default="EXECUTE",
    )  # fmt: skip
    decision = adjudicate_with_deadline(envelope(), None, bundle, deadline_ms=10, clock=clock)
    assert code_of(decision) == "kernel_deadline_exceeded"
    assert decision.basis[0].detail == {"deadlineMs": 10}
    assert asked[-1] == slow
    in_time = adjudicate_with_deadline(
        envelope(), None, policy(default="EXECUTE"), deadline_ms=1, clock=clock
    )
    assert in_time.kind == "EXECUTE"


@requirement("003:pure")
@pytest.mark.parametrize(
    "nonsense",
    [
        0,
        "",
        "EXECUTE",
        {"kind": "EXECUTE", "basis": []},
        object(),
        [Execute()],
        Execute,
        Execute(basis=None),  # type: ignore[arg-type]
        Execute(basis=("state:ok",)),  # type: ignore[arg-type]
        Execute(basis=(Basis("business", "made_up"),)),
        Execute(basis=(Basis("business", "rule_satisfied", "text"),)),
        Execute(basis=(basis("business", "rule_satisfied", n=float("nan")),)),
        Execute(basis=(basis("business", "rule_satisfied", o=object()),)),
        Refuse(None),  # type: ignore[arg-type]
        Refuse(msgspec.structs.replace(NO.refusal, kind="WEATHER")),  # type: ignore[arg-type]
        Refuse(msgspec.structs.replace(NO.refusal, code="")),
        Refuse(msgspec.structs.replace(NO.refusal, user_facing=3)),  # type: ignore[arg-type]
        Refuse(msgspec.structs.replace(NO.refusal, detail="\ud800")),
        Escalate("god", "why"),  # type: ignore[arg-type]
        Escalate("human", None),  # type: ignore[arg-type]
        RequestConfirmation(7),  # type: ignore[arg-type]
        Defer("", 1),
        Defer("s", -1),
        Defer("s", 1.5),  # type: ignore[arg-type]
        Defer("s", 2**60),
        Rewrite(envelope(), None),  # type: ignore[arg-type]
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_a_decision_is_a_panic(nonsense: Any) -> None:
    decision = adjudicate(envelope(), None, policy(business=[lambda _e, _s: nonsense]))
    assert code_of(decision) == "guard_panic"
    assert decision.basis[-1].detail["phase"] == "business"
    msgspec.json.encode(decision)


def test_reasons_may_come_as_a_list() -> None:
    loose: Any = Execute(basis=[RULE])  # type: ignore[arg-type]
    decision = adjudicate(envelope(), None, policy(business=[constant(loose)]))
    assert decision.basis[-1] == RULE
    assert isinstance(decision.basis, tuple)


@dataclasses.dataclass
class Odd(Exception):
    """An exception that cannot describe itself."""

    def __str__(self) -> str:
        raise RuntimeError


@requirement("003:pure")
@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad"),
        RecursionError(),
        MemoryError(),
        StopIteration(),
        Odd(),
        ValueError("\ud800" * 9000),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("phase", ["state", "auth", "business"])
def test_whatever_a_guard_raises_is_a_refusal(phase: str, error: BaseException) -> None:
    def bad(_envelope: IntentEnvelope, _state: Any) -> None:
        raise error

    decision = adjudicate(envelope(), None, policy(**{phase: [silent, bad]}, default="EXECUTE"))  # type: ignore[arg-type]
    assert code_of(decision) == "guard_panic"
    detail = decision.basis[-1].detail
    assert (detail["phase"], detail["index"], detail["guardName"]) == (phase, 1, "bad")
    assert detail["errorName"] == type(error).__name__
    assert len(msgspec.json.encode(decision)) < 10_000


@requirement("003:pure")
@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("phase", ["state", "taint", "auth", "business"])
def test_a_process_can_still_be_told_to_stop(phase: str, signal: type[BaseException]) -> None:
    """A handler of SIGTERM may raise SystemExit in the middle of a guard. Then nothing executes."""

    def stopped(*_: Any) -> Any:
        raise signal

    taint = Minimum()
    taint.minimum_for = stopped  # type: ignore[method-assign]
    bundle = policy(taint=taint) if phase == "taint" else policy(**{phase: [stopped]})  # type: ignore[arg-type]
    ledger, records = MemoryExecutionLedger(), Records()
    with pytest.raises(signal):
        adjudicate(envelope(), None, bundle)
    with pytest.raises(signal):
        adjudicate_and_audit(
            envelope(), None, bundle, sink=records, clock=FakeClock(), ledger=ledger
        )
    assert records.all == []
    assert ledger.check(envelope().intent_hash) is None


@pytest.mark.parametrize("level", ["ROOT", None, 3])
def test_a_taint_policy_that_errs_is_a_panic(level: Any) -> None:
    decision = adjudicate(envelope(), None, policy(taint=Minimum(level), default="EXECUTE"))
    assert code_of(decision) == "guard_panic"
    assert decision.basis[-1].detail["phase"] == "taint"


def test_a_policy_that_is_none_is_a_panic() -> None:
    decision = adjudicate(envelope(), None, None)  # type: ignore[arg-type]
    assert code_of(decision) == "guard_panic"
    broken, steps = adjudicate_with_trace(envelope(), None, policy(business=7))  # type: ignore[arg-type]
    assert broken.basis[-1].detail["phase"] == "business"
    assert steps[-1] == TraceStep("business", "match")


@requirement("003:pure")
@pytest.mark.parametrize(
    "after",
    [{"qty": 0}, {"qty": True}, {"qty": object()}, {}],
    ids=["another value", "another type", "no JSON", "empty"],
)
@pytest.mark.parametrize("says", [None, Execute(), NO], ids=["None", "EXECUTE", "REFUSE"])
def test_a_guard_that_changes_the_envelope_is_a_panic(after: Any, says: Any) -> None:
    def change(envelope: IntentEnvelope, _state: Any) -> Any:
        envelope.payload.clear()
        envelope.payload.update(after)
        return says

    decision = adjudicate(envelope(), None, policy(state=[change], default="EXECUTE"))
    assert code_of(decision) == "guard_panic"
    assert "changed the envelope" in decision.basis[-1].detail["message"]
