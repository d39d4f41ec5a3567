"""`adjudicate_and_audit`: ledger, decision, metrics, learning, record, in this order."""

import threading
from typing import Any

import msgspec
import pytest
from tests.kernel.making import AT, Broken, FakeClock, Minimum, Records, Watching, envelope, policy
from tests.kernel.test_adjudication import cap, code_of
from tests.requirements import requirement

from subluminal.kernel import (
    Adjudicated,
    Confirmation,
    Decision,
    Execute,
    IntentEnvelope,
    Kill,
    LedgerEntry,
    MemoryExecutionLedger,
    Plan,
    PolicyBundle,
    RequestConfirmation,
    Rewrite,
    RuntimeContext,
    Supersedes,
    adjudicate_and_audit,
    basis,
    constant,
    named,
    plan_fingerprint,
    verify_audit_record,
    with_payload,
)
from subluminal.kernel.basis import flat_basis

ALLOW = policy(default="EXECUTE")
ASK = policy(
    business=[constant(RequestConfirmation("Sure?", (basis("business", "rule_satisfied"),)))]
)


class Audited:
    """Calls `adjudicate_and_audit` with sinks of its own."""

    def __init__(self, **given: Any) -> None:
        self.records = Records()
        self.watching = Watching()
        self.ledger = MemoryExecutionLedger()
        self.given: dict[str, Any] = {
            "sink": self.records,
            "clock": FakeClock(),
            "ledger": self.ledger,
            "context": RuntimeContext("t-1", metrics=self.watching, learning=self.watching),
        } | given

    def __call__(self, made: Any, bundle: PolicyBundle = ALLOW, **more: Any) -> Adjudicated:
        return adjudicate_and_audit(made, None, bundle, **(self.given | more))


@requirement("003:audit", "003:metrics")
def test_a_decision_is_counted_learned_and_recorded() -> None:
    audited = Audited()
    plan = Plan(["search"], ["order.submit"])
    bundle = policy(business=[named("allow", constant(Execute()))])
    done = audited(envelope(), bundle, plan=plan)
    assert (done.decision.kind, done.ledger_hit, done.envelope) == ("EXECUTE", None, envelope())
    assert audited.records.all == [done.record]
    assert verify_audit_record(done.record).verified is True
    assert [method for method, _ in audited.watching.seen] == [
        "record_ledger_op", "record_ledger_op", "record_decision", "record_outcome"
    ]  # fmt: skip
    assert [(op.op, op.outcome) for op in audited.watching.of("record_ledger_op")] == [
        ("check", "miss"), ("claim", "ok")
    ]  # fmt: skip
    (event,) = audited.watching.of("record_outcome")
    assert (event.guard_id, event.plan_fingerprint) == ("allow", plan_fingerprint(plan))
    assert done.record.plan is not None
    assert done.record.plan["planFingerprint"] == event.plan_fingerprint


@requirement("003:metrics")
def test_a_refusal_is_counted_too() -> None:
    audited = Audited()
    audited(envelope(), policy())
    (refusal,) = audited.watching.of("record_refusal")
    assert refusal.refusal.code == "default_deny"
    assert audited.ledger.check(envelope().intent_hash) is None


@requirement("003:ledger")
def test_an_executed_intent_is_suppressed_and_its_guards_are_not_asked() -> None:
    audited = Audited()
    audited(envelope())
    again = audited(envelope(created_at="later"), policy(state=[pytest.fail]))
    assert code_of(again.decision) == "ledger_replay_suppressed"
    assert again.decision.basis == (
        basis(
            "ledger", "replay_suppressed", previousAt=AT, sessionId="s-1", kind="order.submit",
            resourceVersion="", status="claimed",
        ),
    )  # fmt: skip
    assert again.ledger_hit == LedgerEntry(envelope().intent_hash, AT, "s-1", "order.submit")
    assert len(audited.records.all) == 2


@requirement("003:ledger")
def test_the_loser_of_a_race_is_told_the_real_holder() -> None:
    holder = LedgerEntry(envelope().intent_hash, "earlier", "s-9", "order.submit", "7")

    class Raced(MemoryExecutionLedger):
        def check(self, intent_hash: str, /) -> None:
            return None

    ledger = Raced()
    ledger.claim(holder)
    done = Audited(ledger=ledger)(envelope())
    assert done.ledger_hit == holder
    assert done.decision.basis[0].detail["sessionId"] == "s-9"


def test_of_many_threads_one_executes() -> None:
    audited = Audited(context=None)
    kinds: list[str] = []
    threads = [
        threading.Thread(target=lambda: kinds.append(audited(envelope()).decision.kind))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kinds) == ["EXECUTE"] + ["REFUSE"] * 15


@requirement("003:audit")
def test_a_failing_sink_raises_and_gives_the_claim_free() -> None:
    audited = Audited(sink=Records(OSError("full")))
    rolled: list[int] = []
    with pytest.raises(OSError, match="full"):
        audited(envelope(), rate_limit_rollback=lambda: rolled.append(1))
    assert audited.ledger.check(envelope().intent_hash) is None
    (failure,) = audited.watching.of("record_sink_failure")
    assert (failure.sink, failure.error_class) == ("audit", "OSError")
    assert rolled == [1]
    with pytest.raises(OSError):
        audited(envelope(), ledger=None)


def test_sinks_that_only_watch_change_nothing() -> None:
    context = RuntimeContext(metrics=Broken(), learning=Broken())  # type: ignore[arg-type]
    assert Audited(context=context)(envelope()).decision.kind == "EXECUTE"
    assert Audited(context=None, ledger=None)(envelope()).decision.kind == "EXECUTE"


@requirement("003:kill-switch")
def test_the_switch_of_a_context_stops_its_tenant() -> None:
    audited = Audited(context=RuntimeContext("t-1", kill=Kill("drill", AT)))
    done = audited(envelope())
    assert done.decision.basis == (
        basis("kill", "active", reason="drill", toggledAt=AT, tenant="t-1"),
    )
    anonymous = Audited(context=RuntimeContext(kill=Kill("drill", AT)))(envelope())
    assert "tenant" not in anonymous.decision.basis[0].detail


@requirement("003:confirmation")
def test_a_confirmed_question_executes() -> None:
    audited = Audited()
    said = Confirmation(envelope().intent_hash, AT)
    assert audited(envelope(), ASK).decision.kind == "REQUEST_CONFIRMATION"
    other = Confirmation("0" * 64, AT)
    assert audited(envelope(), ASK, confirmation=other).decision.kind == "REQUEST_CONFIRMATION"
    done = audited(envelope(), ASK, confirmation=said)
    assert done.decision.kind == "EXECUTE"
    assert done.decision.basis[-1] == basis(
        "confirmation", "received", confirmedAt=AT, originalPrompt="Sure?"
    )
    refused = Audited()(envelope(), policy(), confirmation=said)
    assert refused.decision.kind == "REFUSE"


@requirement("003:untrusted-never-executes", "kernel:untrusted-never-executes")
def test_a_confirmation_does_not_lift_the_taint_gate() -> None:
    """A state guard may ask before the gate: the answer must not lead round it."""
    bundle = policy(state=ASK.business, taint=Minimum("TRUSTED"))
    said = Confirmation(envelope().intent_hash, AT)
    done = Audited()(envelope(), bundle, confirmation=said)
    assert code_of(done.decision) == "taint_level_insufficient"


@requirement("003:rewrite-scope")
def test_a_rewritten_envelope_is_adjudicated_and_executed_once() -> None:
    audited = Audited()
    original = envelope({"qty": 9})
    bundle = policy(business=[cap], default="EXECUTE")
    done = audited(original, bundle)
    assert (done.decision.kind, done.envelope.payload) == ("EXECUTE", {"qty": 5})
    first, second = audited.records.all
    assert (first.decision["kind"], first.intent_hash) == ("REWRITE", original.intent_hash)
    assert second == done.record
    assert second.intent_hash == done.envelope.intent_hash
    assert second.supersedes == {
        "predecessorIntentHash": original.intent_hash, "predecessorAt": AT, "reason": "rewrite_executed"
    }  # fmt: skip
    assert audited.ledger.check(done.envelope.intent_hash) is not None
    assert audited.ledger.check(original.intent_hash) is None
    assert code_of(audited(original, bundle).decision) == "ledger_replay_suppressed"


def test_a_second_rewrite_is_a_panic_and_another_answer_stands() -> None:
    def less(envelope: IntentEnvelope, _state: Any) -> Decision:
        return Rewrite(with_payload(envelope, {"qty": envelope.payload["qty"] - 1}), "less")

    twice = Audited()(envelope(), policy(business=[less]))
    assert code_of(twice.decision) == "guard_panic"
    refused = Audited()(envelope({"qty": 9}), policy(business=[cap]))
    assert code_of(refused.decision) == "default_deny"
    assert refused.record.supersedes is None


def test_the_record_says_what_it_follows_and_which_version_it_saw() -> None:
    before = Supersedes("0" * 64, AT, "defer_resumed", "tok")
    audited = Audited()
    done = audited(envelope(), supersedes=before, resolve_resource_version=lambda _e, _s: "v7")
    assert done.record.resource_version == "v7"
    assert done.record.supersedes is not None
    assert done.record.supersedes["token"] == "tok"
    entry = audited.ledger.check(envelope().intent_hash)
    assert entry is not None
    assert entry.resource_version == "v7"


@requirement("003:rate-limit")
def test_only_what_executes_counts_against_a_rate() -> None:
    rolled: list[str] = []
    Audited()(envelope(), ALLOW, rate_limit_rollback=lambda: rolled.append("executed"))
    Audited()(envelope(), policy(), rate_limit_rollback=lambda: rolled.append("refused"))
    assert rolled == ["refused"]

    def broken() -> None:
        raise OSError

    assert Audited()(envelope(), policy(), rate_limit_rollback=broken).decision.kind == "REFUSE"


@pytest.mark.parametrize(
    "forged",
    [
        None,
        {},
        msgspec.structs.replace(envelope(), payload=object()),
        msgspec.structs.replace(envelope(), intent_hash=7),  # type: ignore[arg-type]
        msgspec.structs.replace(envelope(), kind="\ud800"),
    ],
    ids=["nothing", "an object", "payload", "hash", "kind"],
)
def test_a_forged_envelope_is_refused_and_on_record(forged: Any) -> None:
    audited = Audited()
    done = audited(forged)
    assert done.decision.kind == "REFUSE"
    assert audited.records.all == [done.record]
    msgspec.json.encode(done.record)


def test_the_record_has_the_envelope_as_it_was_before_the_guards() -> None:
    def change(envelope: IntentEnvelope, _state: Any) -> Any:
        envelope.payload["qty"] = 0

    done = Audited()(envelope(), policy(state=[change], default="EXECUTE"))
    assert code_of(done.decision) == "guard_panic"
    assert verify_audit_record(done.record).verified is True
    assert flat_basis(done.decision.basis)[-1] == "kernel:guard_panic"


class Ticking:
    """A clock that goes on by 10 ms whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def now_iso(self) -> str:
        return "2026-01-01T00:00:00.000Z"

    def mono_ms(self) -> float:
        self.now += 10
        return self.now


def test_a_deadline_holds_for_an_audited_decision() -> None:
    bundle = policy(business=[named("allow", constant(Execute()))])
    late = Audited(clock=Ticking())(envelope(), bundle, deadline_ms=15)
    assert late.decision.kind == "REFUSE"
    assert late.record.decision["refusal"]["code"] == "kernel_deadline_exceeded"
    done = Audited(clock=Ticking())(envelope(), bundle, deadline_ms=10_000)
    assert (done.decision.kind, done.guard) == ("EXECUTE", "allow")
