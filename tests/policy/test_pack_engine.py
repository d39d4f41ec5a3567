"""The engine of a door that asks a pack: the strictest of pack and layers decides."""

import pytest
from msgspec import structs
from tests.policy.bundles import bundle, rule
from tests.requirements import requirement

from subluminal.contracts.counters import CellKind
from subluminal.contracts.decision import Decision, Hint, PolicyRef
from subluminal.contracts.gate import Settled
from subluminal.contracts.identity import Identity
from subluminal.contracts.intents import Judgement, KernelDecision
from subluminal.contracts.vocabulary import (
    Action,
    Env,
    Layer,
    Mode,
    ReasonCode,
    Requirement,
    Severity,
    Taint,
)
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call
from subluminal.policy.pack_engine import PackEngine
from subluminal.policy.taint import lowering_to

PACK = PolicyRef(policy_id="pack:bank", policy_version="1.2.0", policy_hash="f" * 64)
KEY = ("pack", "bank.transfer")


def engine(*layers, gates=()):
    compiled = [(Layer(name), compile_bundle(each)) for name, each in layers]
    return PackEngine(compiled, Identity(env=Env.CI), gates, pack=PACK)


def alone(*rules, **changes):
    return engine(("user", bundle(*rules, **changes)))


def kernel(kind="EXECUTE"):
    return KernelDecision(
        pack="bank",
        version="1.2.0",
        fingerprint="f" * 64,
        intent_kind="bank.transfer",
        intent_hash="a" * 64,
        kind=kind,
        basis=["business:rule_satisfied"],
        taint=Taint.UNTRUSTED,
    )


def refusal(action=Action.BLOCK, code="bank.closed"):
    return Decision(
        action=action,
        rule_id=None,
        severity=Severity.WARN,
        reason_code=code,
        summary="the bank is closed",
        hint=Hint(hint_text="the bank is closed", retry_advice="wait"),
    )


YES = Judgement(refusal=None, kernel=kernel())
NO = Judgement(refusal=refusal(), kernel=kernel("REFUSE"))
ASKS = Judgement(
    refusal=refusal(Action.REJECT_WITH_HINT, ReasonCode.HUMAN_REQUIRED),
    requirement=Requirement.HUMAN,
    kernel=kernel("ESCALATE"),
)


def call(judgement, **more):
    return Call("bank", "bank.transfer", {}, "ab" * 32, judgement=judgement, **more)


def evaluate(it, asked, **more):
    return it.evaluate(asked, MemoryCounters(), wall_ms=0, mono_ms=0, **more)


class TestStrictest:
    def test_if_all_allow_the_decision_is_the_policys(self):
        found = evaluate(alone(rule("allow")), call(YES))

        assert found.forwarded
        assert (found.decision.rule_id, found.policy.policy_id) == ("allow", "p")
        assert found.kernel == YES.kernel

    def test_without_layers_the_pack_alone_lets_a_call_pass(self):
        found = evaluate(engine(), call(YES))

        assert found.forwarded
        assert found.decision.reason_code == ReasonCode.DEFAULT_ALLOW
        assert found.kernel == YES.kernel

    @pytest.mark.parametrize("layers", [(), (("user", bundle(rule("allow"))),)])
    def test_the_packs_refusal_holds(self, layers):
        found = evaluate(engine(*layers), call(NO))

        assert not found.forwarded
        assert found.decision == NO.refusal
        assert found.policy == PACK
        assert found.kernel == NO.kernel
        assert found.refused_by == []

    def test_a_rule_that_is_stricter_decides_and_the_pack_is_on_record(self):
        found = evaluate(alone(rule("deny")), call(ASKS))

        assert (found.decision.rule_id, found.policy.policy_id) == ("deny", "p")
        assert found.kernel == ASKS.kernel

    @requirement("kernel-rule:engine")
    def test_on_a_tie_the_pack_decides(self):
        assert evaluate(alone(rule("deny")), call(NO)).policy == PACK

    def test_observe_mode_of_a_policy_does_not_weaken_the_pack(self):
        it = alone(rule("deny"), mode="observe")
        found = evaluate(it, call(NO))

        assert found.policy == PACK
        assert found.would_be.rule_id == "deny"
        assert it.mode is Mode.GUARDRAILS

    def test_a_plugin_that_lets_a_call_pass_does_not_weaken_the_pack(self):
        class Plugin:
            name = "plugin:yes"

            def ask(self, _call, _counters, *, wall_ms, mono_ms):
                return Settled(evaluate(engine(), call(YES)).decision, PACK)

        assert not evaluate(engine(gates=[Plugin()]), call(NO)).forwarded

    def test_a_call_about_which_nobody_asked_the_pack_is_refused(self):
        found = evaluate(engine(), call(None))

        assert found.decision.action is Action.BLOCK
        assert found.decision.reason_code == ReasonCode.EVALUATION_ERROR
        assert (found.policy, found.kernel) == (PACK, None)

    def test_rules_count_whatever_the_pack_says(self):
        rules = rule("budget"), rule("taint")
        refused, passed = (evaluate(alone(*rules), call(said)) for said in (NO, YES))

        assert [kind for kind, _, _ in refused.updates] != []
        assert CellKind.TAINT not in {kind for kind, _, _ in refused.updates}
        assert CellKind.TAINT in {kind for kind, _, _ in passed.updates}


class TestGrants:
    def test_a_person_is_asked_about_what_the_pack_leaves_to_one(self):
        (asking,) = evaluate(engine(), call(ASKS)).refused_by

        assert asking.grant_key == KEY
        assert (asking.refusal, asking.requirement) == (ASKS.refusal, Requirement.HUMAN)

    def test_a_grant_lets_the_call_pass(self):
        found = evaluate(alone(rule("allow")), call(ASKS, granted=frozenset({KEY})))

        assert found.forwarded
        assert found.decision.reason_code == ReasonCode.APPROVAL_GRANTED
        assert (found.decision.rule_id, found.policy) == (None, PACK)
        assert (found.grants_used, found.kernel) == ([KEY], ASKS.kernel)

    def test_a_grant_is_nothing_to_a_pack_that_does_not_know_of_it(self):
        unanswered = structs.replace(ASKS, is_answered=False)
        found = evaluate(engine(), call(unanswered, granted=frozenset({KEY})))

        assert found.decision == ASKS.refusal
        assert (found.grants_used, len(found.refused_by)) == ([], 1)

    def test_no_grant_covers_another_refusal(self):
        granted = frozenset({KEY})
        found = evaluate(engine(), call(NO, granted=granted, lifted=granted))

        assert found.decision == NO.refusal

    def test_a_grant_for_the_pack_is_none_for_a_rule(self):
        found = evaluate(alone(rule("deny", require="approval")), call(ASKS))
        again = evaluate(
            alone(rule("deny", require="approval")), call(ASKS, granted=frozenset({KEY}))
        )

        assert {each.grant_key for each in found.refused_by} == {KEY, ("user", "deny")}
        assert not again.forwarded
        assert (again.decision.rule_id, again.policy.policy_id) == ("deny", "p")


class TestLevel:
    """The pack was asked before the run's lock was taken."""

    @pytest.mark.parametrize(
        ("told", "now", "passes"),
        [
            (None, Taint.UNTRUSTED, True),
            (Taint.SYSTEM, Taint.SYSTEM, True),
            (Taint.UNTRUSTED, Taint.TRUSTED, True),
            (Taint.SYSTEM, Taint.TRUSTED, False),
            (Taint.TRUSTED, Taint.UNTRUSTED, False),
        ],
    )
    def test_an_answer_for_a_higher_level_does_not_count(self, told, now, passes):
        counters = MemoryCounters()
        counters.write(lowering_to(now))
        asked = call(structs.replace(YES, level=told))
        found = engine().evaluate(asked, counters, wall_ms=0, mono_ms=0)

        assert found.forwarded is passes
        assert (found.decision.reason_code == ReasonCode.EVALUATION_ERROR) is not passes


class TestFailure:
    @pytest.mark.parametrize("on_error", ["ALLOW", "BLOCK"])
    def test_what_cannot_be_recorded_is_refused_whatever_the_policy_says(self, on_error):
        it = alone(defaults={"decision_on_error": on_error})
        found = it.failure(call(YES), ReasonCode.JOURNAL_UNAVAILABLE, "the disk is full")

        assert not found.forwarded
        assert found.decision.action is Action.BLOCK
        assert (found.decision.summary, found.policy) == ("the disk is full", PACK)

    def test_the_pack_is_listed_before_the_layers(self):
        it = alone(mode="control")

        assert [(each.layer, each.policy_id) for each in it.policies] == [
            (Layer.PACK, "pack:bank"),
            (Layer.USER, "p"),
        ]
        assert it.policies[0].policy_hash == PACK.policy_hash
        assert (it.asks_kernel, it.mode) == (True, Mode.CONTROL)


def test_a_stop_names_the_first_policy_or_the_pack():
    stop = refusal(code=ReasonCode.KILL_SWITCH)
    assert alone().refusal(stop).policy.policy_id == "p"
    assert engine().refusal(stop).policy == PACK
