"""Rule kind `kernel` in policies: checks, snapshots, evaluation, lint, diff, explain, promote."""

from typing import Any, ClassVar

import msgspec
import pytest
from tests.policy.bundles import bundle, plain, rule, text, tools
from tests.policy.desk import (
    DESK,
    FINGERPRINT,
    Teller,
    filled,
    find_desk,
    judgement,
    policy,
    teller_of,
)
from tests.requirements import requirement

from subluminal.canonical import args_hash
from subluminal.contracts.counters import CellKind
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode, Requirement, Severity, Taint
from subluminal.errors import InvalidInput, SubluminalError
from subluminal.policy.case_running import run_case
from subluminal.policy.casefile import parse_cases
from subluminal.policy.checking import semantic_misfits
from subluminal.policy.compiling import bundle_of, compile_bundle, read_snapshot
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.diff.diffing import diff
from subluminal.policy.evaluation import Call, Engine, Evaluation
from subluminal.policy.explaining import PackStep, PackSteps, as_text, explain
from subluminal.policy.lint.linting import remarks
from subluminal.policy.loading import parse_bundle
from subluminal.policy.packs import no_packs
from subluminal.policy.promoting import RefusedCall, also_passed, decide, refusing_rule
from subluminal.policy.snapshot import KERNEL_FORMAT, Snapshot
from subluminal.policy.taint import lowering_to

ASK = {**rule("kernel", "desk"), "effect": {"kernel": {"pack": "desk", "intent": "desk.pay"}}}
KEY = ("user", "desk")


def asks(**changes: Any) -> dict[str, Any]:
    """A kernel rule as an author writes it; `changes` go into its effect, or are `match`."""
    fields = {name: changes.pop(name) for name in ("match", "enabled") if name in changes}
    return {**ASK, **fields, "effect": {"kernel": {**ASK["effect"]["kernel"], **changes}}}


def engine(*rules: dict[str, Any], **changes: Any) -> Engine:
    return Engine([(Layer.USER, policy(*rules, **changes))], Identity())


def evaluate(it: Engine, args: dict[str, Any] | None, **more: Any) -> Evaluation:
    counters = more.pop("counters", None) or MemoryCounters()
    judge = more.pop("judge", Teller())
    asked = Call("bank", "pay", args, args_hash(args or {}), judge=judge, **more)
    return it.evaluate(asked, counters, wall_ms=0, mono_ms=0)


class TestChecking:
    def problems(self, *rules: dict[str, Any]) -> list[str]:
        with pytest.raises(InvalidInput) as refused:
            parse_bundle(text(*rules), "p.json", find_desk)
        return [f"{each.message} ({each.hint})" for each in refused.value.problems]

    @requirement("kernel-rule:compile")
    def test_a_pack_that_is_not_installed_does_not_compile(self) -> None:
        (told,) = self.problems(asks(pack="disk"))
        assert told.endswith("pack `disk` is not installed (is it?)")

    @requirement("kernel-rule:compile")
    def test_an_intent_that_the_pack_does_not_have_does_not_compile(self) -> None:
        (told,) = self.problems(asks(intent="desk.pray"))
        assert told.endswith("has no intent `desk.pray` (did you mean `desk.pay`?)")

    def test_unknown_members_do_not_compile(self) -> None:
        (told,) = self.problems(asks(states={}))
        assert "`states`" in told
        assert "`state`" in told

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"version": "0.9"}, "the installed pack has version `1.0.0`"),
            ({"fingerprint": "e" * 64}, f"the installed pack has the fingerprint `{FINGERPRINT}`"),
            ({"payload": {"": "a"}}, "names must not be empty"),
            ({"payload": {"a": " "}}, "names must not be empty"),
        ],
    )
    def test_what_cannot_be_meant_does_not_compile(
        self, changes: dict[str, Any], message: str
    ) -> None:
        (told,) = self.problems(asks(**changes))
        assert message in told

    def test_a_state_that_the_pack_cannot_use_does_not_compile(self) -> None:
        picky = DESK._replace(state_problem=lambda state: f"no {sorted(state)}")
        with pytest.raises(InvalidInput, match=r"cannot use this state: no \['a'\]"):
            parse_bundle(text(asks(state={"a": 1})), "p.json", lambda _name: picky)

    def test_numbers_that_json_does_not_have_are_found_first(self) -> None:
        made = bundle(asks(state={"a": float("nan")}))
        (found,) = semantic_misfits(made, find_desk)
        assert found.path == ("rules", 0, "effect", "kernel", "state", "a")

    def test_the_pack_of_a_disabled_rule_need_not_be_installed(self) -> None:
        loaded = parse_bundle(text(asks(pack="other", enabled=False)), "p.json", find_desk)
        assert compile_bundle(loaded.bundle).data["rules"] == []

    def test_without_packs_none_is_installed(self) -> None:
        with pytest.raises(InvalidInput, match="pack `desk` is not installed"):
            parse_bundle(text(ASK), "p.json")

    def test_a_rule_beside_a_broken_one_is_checked_too(self) -> None:
        told = self.problems({"kind": "deny"}, asks(pack="other"))
        assert any("pack `other` is not installed" in each for each in told)


class TestSnapshots:
    @requirement("kernel-rule:fingerprint")
    def test_the_snapshot_names_version_and_fingerprint(self) -> None:
        made = compile_bundle(parse_bundle(text(ASK), "p.json", find_desk).bundle)

        assert made.data["format"] == KERNEL_FORMAT
        assert made.data["rules"][0]["effect"]["kernel"] == {
            "pack": "desk",
            "intent": "desk.pay",
            "payload": None,
            "state": {},
            "version": "1.0.0",
            "fingerprint": FINGERPRINT,
        }
        assert made.packs == {"desk": FINGERPRINT}

    def test_a_policy_that_asks_no_pack_is_as_before(self) -> None:
        made = policy(rule("deny"), rule("taint"))
        assert made.data["format"] != KERNEL_FORMAT
        assert made.packs == {}
        assert policy(rule("deny"), asks(enabled=False)).data["format"] == 1

    def test_a_snapshot_comes_back_as_a_bundle(self) -> None:
        made = policy(asks(payload={"amount": "brl"}, state={"limit": [1, None]}), rule("deny"))
        read, back = read_snapshot(made.to_json())

        assert read.policy_hash == made.policy_hash
        assert bundle_of(made) == back

    def test_a_snapshot_that_comes_into_force_needs_its_pack(self) -> None:
        made = policy(ASK)
        with pytest.raises(SubluminalError, match="pack `desk` is not installed"):
            read_snapshot(made.to_json(), no_packs)
        other = DESK._replace(fingerprint="e" * 64)
        with pytest.raises(SubluminalError, match="the installed pack has the fingerprint `eee"):
            read_snapshot(made.to_json(), lambda _name: other)
        assert read_snapshot(made.to_json(), find_desk)[0].policy_hash == made.policy_hash

    @pytest.mark.parametrize("field", ["version", "fingerprint"])
    def test_a_snapshot_without_its_pack_is_not_ours(self, field: str) -> None:
        data = policy(ASK).data
        data["rules"][0]["effect"]["kernel"][field] = None
        with pytest.raises(SubluminalError, match="does not name version and fingerprint"):
            bundle_of(Snapshot(data))

    def test_one_pack_has_one_fingerprint(self) -> None:
        data = policy(ASK, {**ASK, "rule_id": "two"}).data
        data["rules"][0]["effect"]["kernel"]["fingerprint"] = "e" * 64
        with pytest.raises(SubluminalError, match="the installed pack has the fingerprint"):
            bundle_of(Snapshot(data))


class TestEvaluation:
    @requirement("kernel-rule:place")
    def test_execute_is_no_opinion(self) -> None:
        it = engine(ASK, rule("deny"))
        found = evaluate(it, {"say": "EXECUTE"})

        assert found.decision.rule_id == "deny"
        assert found.kernel is not None
        assert found.kernel.kind == "EXECUTE"

    @requirement("kernel-rule:place")
    def test_an_allow_above_settles_access_and_nobody_is_asked(self) -> None:
        teller = Teller()
        found = evaluate(engine(rule("allow"), ASK), {"say": "REFUSE"}, judge=teller)

        assert found.forwarded
        assert (teller.asked, found.kernel) == ([], None)

    @requirement("kernel-rule:place")
    def test_an_objection_settles_access(self) -> None:
        found = evaluate(engine(ASK, rule("allow")), {"say": "REFUSE"})

        assert found.decision.action is Action.BLOCK
        assert (found.decision.rule_id, found.decision.reason_code) == ("desk", "desk.no")
        assert found.decision.severity is Severity.WARN
        assert found.policy.policy_id == "p"
        assert found.kernel == judgement("REFUSE").kernel

    def test_without_another_rule_execute_is_the_default(self) -> None:
        found = evaluate(engine(ASK), {})
        assert found.decision.reason_code == ReasonCode.DEFAULT_ALLOW

    def test_deferrals_and_waits_are_told(self) -> None:
        deferred = evaluate(engine(ASK), {"say": "DEFER"}).decision
        waits = evaluate(engine(ASK), {"say": "WAIT"}).decision

        assert deferred.defer is not None
        assert (deferred.reason_code, deferred.defer.signal) == ("SIGNAL_REQUIRED", "opening")
        assert (waits.action, waits.backoff_ms) == (Action.THROTTLE, 500)

    def test_the_pack_is_told_the_level_of_the_run(self) -> None:
        teller, counters = Teller(), MemoryCounters()
        counters.write(lowering_to(Taint.UNTRUSTED))
        it = engine(ASK)
        evaluate(it, {}, judge=teller, counters=counters)

        assert [level for *_, level in teller.asked] == [Taint.UNTRUSTED]
        assert it.asks_taint

    def test_a_condition_that_does_not_hold_asks_nobody(self) -> None:
        teller = Teller()
        it = engine(asks(match={"args": {"has_keys": ["amount"]}}))
        assert evaluate(it, {"say": "REFUSE"}, judge=teller).forwarded
        assert teller.asked == []

    def test_limits_count_whatever_the_pack_says(self) -> None:
        found = evaluate(engine(ASK, rule("budget"), rule("taint")), {"say": "REFUSE"})
        kinds = [kind for kind, _, _ in found.updates]
        assert kinds
        assert CellKind.TAINT not in kinds

    @requirement("kernel-rule:errors")
    @pytest.mark.parametrize(("on_error", "forwarded"), [("ALLOW", True), ("BLOCK", False)])
    def test_a_pack_that_cannot_be_asked_is_an_error(self, on_error: str, forwarded: bool) -> None:
        it = engine(ASK, defaults={"decision_on_error": on_error})
        for judge in (Teller(), None):
            found = evaluate(it, {"say": "BROKEN"}, judge=judge)
            assert found.forwarded is forwarded
            assert found.decision.reason_code == ReasonCode.EVALUATION_ERROR
            assert found.decision.rule_id == "desk"
            assert ("on fire" in found.decision.summary) is (judge is not None)

    @requirement("kernel-rule:errors")
    def test_arguments_that_are_too_large_are_an_error(self) -> None:
        found = evaluate(engine(ASK), None)
        assert found.decision.reason_code == ReasonCode.EVALUATION_ERROR
        assert "too large to inspect" in found.decision.summary

    def test_observe_mode_only_tells(self) -> None:
        found = evaluate(engine(ASK, mode="observe"), {"say": "ESCALATE"})
        assert found.forwarded
        assert found.would_be is not None
        assert found.would_be.reason_code == "HUMAN_REQUIRED"
        assert found.refused_by == []
        assert found.kernel is not None

    def test_control_mode_turns_a_refusal_into_a_hint(self) -> None:
        found = evaluate(engine(ASK, mode="control"), {"say": "REFUSE"}).decision
        assert found.action is Action.REJECT_WITH_HINT
        assert found.hint is not None
        assert found.hint.hint_text == "at the desk"

    def test_over_layers_the_one_that_objects_is_on_record(self) -> None:
        layers = [(Layer.USER, policy(rule("deny"))), (Layer.REPOSITORY, policy(ASK))]
        found = evaluate(Engine(layers, Identity()), {"say": "ESCALATE"})

        assert found.decision.rule_id == "deny"
        assert found.kernel is not None
        assert found.kernel.kind == "ESCALATE"


class TestGrants:
    @requirement("kernel-rule:grants")
    @pytest.mark.parametrize(
        ("said", "wants"),
        [
            ("ESCALATE", Requirement.HUMAN),
            ("REQUEST_CONFIRMATION", Requirement.CONFIRMATION),
        ],
    )
    def test_a_grant_is_the_confirmation(self, said: str, wants: Requirement) -> None:
        it = engine(ASK)
        (asking,) = evaluate(it, {"say": said}).refused_by
        assert (asking.grant_key, asking.requirement) == (KEY, wants)
        assert asking.refusal.rule_id == "desk"
        passed = evaluate(it, {"say": said}, granted=frozenset({KEY}))

        assert passed.forwarded
        assert passed.decision.reason_code == ReasonCode.APPROVAL_GRANTED
        assert (passed.decision.rule_id, passed.grants_used) == ("desk", [KEY])
        assert passed.kernel is not None
        assert passed.kernel.kind == said

    @requirement("kernel-rule:grants")
    @pytest.mark.parametrize("said", ["REFUSE", "DEFER", "WAIT", "REWRITE"])
    def test_no_grant_covers_another_answer(self, said: str) -> None:
        key = frozenset({KEY})
        found = evaluate(engine(ASK), {"say": said}, granted=key, lifted=key)
        assert not found.forwarded
        assert found.refused_by == []

    def test_a_granted_rule_leaves_the_rest_to_the_rules_below(self) -> None:
        it = engine(ASK, rule("deny"))
        found = evaluate(it, {"say": "ESCALATE"}, granted=frozenset({KEY}))
        assert found.decision.rule_id == "deny"

    def test_the_level_matters_to_a_rule_that_tests_it(self) -> None:
        counters = MemoryCounters()
        counters.write(lowering_to(Taint.UNTRUSTED))
        it = engine(asks(match={"taint": {"below": "TRUSTED"}}))
        (asking,) = evaluate(it, {"say": "ESCALATE"}, counters=counters).refused_by
        assert asking.tests_taint


class TestAskingAhead:
    def ahead(self, it: Engine, args: dict[str, Any]) -> Teller:
        teller = Teller()
        asked = Call("bank", "pay", args, args_hash(args), judge=teller)
        assert it.needs_judge(asked)
        it.ask_packs(asked, MemoryCounters(), wall_ms=0)
        return teller

    @requirement("kernel-rule:ahead")
    def test_all_packs_are_asked_that_an_evaluation_may_ask(self) -> None:
        """Also the one below a rule that a person has answered."""
        two = {**ASK, "rule_id": "two"}
        teller = self.ahead(engine(rule("deny", match=tools("x")), ASK, two), {"desk": "ESCALATE"})
        assert [rule_id for _, rule_id, *_ in teller.asked] == ["desk", "two"]

    def test_the_second_is_not_asked_if_the_first_refuses(self) -> None:
        teller = self.ahead(engine(ASK, {**ASK, "rule_id": "two"}), {"desk": "REFUSE"})
        assert [rule_id for _, rule_id, *_ in teller.asked] == ["desk"]

    def test_a_tool_without_such_a_rule_needs_no_judge(self) -> None:
        it = engine(asks(match=tools("pay")))
        assert not it.needs_judge(Call("bank", "read", {}, args_hash({})))
        assert not it.needs_judge(Call("bank", "\ud800", {}, args_hash({})))
        assert it.asks_kernel
        assert not engine(rule("deny")).asks_kernel

    def test_layers_without_such_a_rule_are_not_evaluated(self) -> None:
        layers = [(Layer.USER, policy(rule("deny"))), (Layer.REPOSITORY, policy(ASK))]
        teller = self.ahead(Engine(layers, Identity()), {})
        assert [layer for layer, *_ in teller.asked] == ["repository"]


class TestRewrites:
    ARGS: ClassVar[dict[str, Any]] = {"say": "REWRITE", "then": {"say": "EXECUTE", "n": 1}}

    def suggested(self, it: Engine, args: dict[str, Any]) -> Any:
        hint = evaluate(it, args).decision.hint
        assert hint is not None
        return hint.suggested_args

    @requirement("kernel-rule:rewrite")
    def test_arguments_that_would_pass_are_offered(self) -> None:
        found = evaluate(engine(ASK), self.ARGS)
        assert not found.forwarded
        assert found.decision.reason_code == ReasonCode.REWRITE_OFFERED
        assert self.suggested(engine(ASK), self.ARGS) == self.ARGS["then"]

    @requirement("kernel-rule:rewrite")
    @pytest.mark.parametrize(
        "other",
        [
            rule("deny", match={"args": {"has_keys": ["n"]}}),
            {**ASK, "rule_id": "two"},
            rule("deny", match={"targets": {"opaque": True}, **tools("pay")}),
        ],
    )
    def test_arguments_that_another_rule_refuses_are_not(self, other: dict[str, Any]) -> None:
        then = {**self.ARGS["then"], "two": "REFUSE"}
        args = {**self.ARGS, "then": then}
        assert self.suggested(engine(ASK, other), args) is None

    def test_arguments_that_the_pack_refuses_or_cannot_judge_are_not(self) -> None:
        for said in ("REFUSE", "ESCALATE", "BROKEN"):
            args = {**self.ARGS, "then": {"say": said}}
            assert self.suggested(engine(ASK), args) is None

    def test_a_deny_does_not_suggest_what_a_pack_refuses(self) -> None:
        deny = rule(
            "deny",
            match={"args": {"key_equals": {"n": 2}}},
            suggest={"n": {"set": 1}},
            action="REJECT_WITH_HINT",
        )
        assert self.suggested(engine(deny, ASK), {"n": 2, "say": "REFUSE"}) is None
        assert self.suggested(engine(deny, ASK), {"n": 2}) == {"n": 1}


def lint(*rules: dict[str, Any]) -> list[str]:
    value = plain(*rules)
    return [each.misfit.message for each in remarks(filled(*rules), value)]


class TestLint:
    def test_a_kernel_rule_that_a_rule_above_settles_is_told(self) -> None:
        for above, verb in ((rule("allow"), "allows"), (rule("deny"), "denies")):
            assert lint(above, ASK) == [
                f"has no effect: rule `{above['rule_id']}` above {verb} every call that it matches"
            ]

    def test_a_kernel_rule_settles_nothing_for_the_rules_below(self) -> None:
        assert lint(ASK, rule("deny"), rule("allow", match=tools("x"))) == [
            "has no effect: rule `deny` above denies every call that it matches"
        ]

    def test_a_taint_rule_has_a_use_if_a_pack_is_asked(self) -> None:
        assert lint(rule("taint", match={"server_name": {"glob": ["web"]}}), ASK) == []


def changes(old: tuple[Any, ...], new: tuple[Any, ...]) -> list[tuple[str, str, str]]:
    found = diff(filled(*old), filled(*new))
    return [(str(each.severity), each.kind, each.summary) for each in found]


class TestDiff:
    @requirement("kernel-rule:diff")
    def test_a_kernel_rule_that_is_removed_loosens(self) -> None:
        assert changes((ASK,), ()) == [("critical", "rule_removed", "removed (kernel)")]
        assert changes((), (ASK,)) == [("warn", "rule_added", "added (kernel)")]

    @requirement("kernel-rule:diff")
    @pytest.mark.parametrize("field", ["intent", "payload", "state"])
    def test_another_question_may_loosen(self, field: str) -> None:
        new = {"intent": "desk.close", "payload": {"a": "b"}, "state": {"limit": 1}}[field]
        ((severity, kind, summary),) = changes((ASK,), (asks(**{field: new}),))
        assert (severity, kind) == ("critical", "rule_modified")
        assert summary.startswith(field)

    @requirement("kernel-rule:diff")
    def test_another_version_of_the_pack_may_loosen(self) -> None:
        old = filled(ASK)
        new = filled(ASK)
        question = msgspec.structs.replace(
            new.rules[0].effect.kernel, version="2.0.0", fingerprint="e" * 64
        )
        effect = msgspec.structs.replace(new.rules[0].effect, kernel=question)
        newer = [msgspec.structs.replace(new.rules[0], effect=effect)]
        found = diff(old, msgspec.structs.replace(new, rules=newer))
        assert [(each.field, str(each.severity)) for each in found] == [
            ("effect.kernel.fingerprint", "critical"),
            ("effect.kernel.version", "info"),
        ]

    def test_an_allow_that_moves_above_loosens(self) -> None:
        allow = rule("allow")
        assert changes((ASK, allow), (allow, ASK)) == [
            ("critical", "rule_moved", "moved above the kernel rule `desk`")
        ]
        assert changes((allow, ASK), (ASK, allow)) == [
            ("warn", "rule_moved", "moved above the allow `allow`")
        ]

    def test_a_new_name_counts_nothing_again(self) -> None:
        assert changes((ASK,), ({**ASK, "rule_id": "counter"},)) == [
            ("info", "rule_renamed", "renamed from `desk`")
        ]


class TestExplain:
    def test_every_rule_says_what_the_pack_said(self) -> None:
        made = policy(ASK, rule("deny", match=tools("x")))
        for said, note in (("EXECUTE", "no objection"), ("REFUSE", "the desk says REFUSE")):
            call = ("bank", "pay", {"say": said})
            found = explain(made, Identity(), call, wall_ms=0, judge_of=teller_of)
            assert note in found.steps[0].note
            assert found.plain()["packs"] == []

    def test_a_pack_that_cannot_be_asked_is_an_error(self) -> None:
        call = ("bank", "pay", {"say": "BROKEN"})
        found = explain(policy(ASK), Identity(), call, wall_ms=0, judge_of=teller_of)
        assert found.steps[0].result == "error"
        assert explain(policy(ASK), Identity(), call, wall_ms=0).steps[0].result == "error"

    def test_the_way_of_the_pack_is_told(self) -> None:
        call = ("bank", "pay", {"say": "REFUSE"})
        found = explain(policy(ASK), Identity(), call, wall_ms=0, judge_of=teller_of)
        kernel = judgement("REFUSE").kernel
        assert kernel is not None
        steps = [PackStep("schema", "pass", None), PackStep("business", "match", "teller")]
        bare = msgspec.structs.replace(kernel, basis=[])
        told = found._replace(packs=(PackSteps("desk", kernel, steps), PackSteps("two", bare, [])))
        assert as_text(told)[-7:] == [
            "",
            "pack desk 1.0.0, asked by rule `desk` about desk.pay: REFUSE",
            "  schema: pass",
            "  business: match (teller)",
            "  because of business:rule_satisfied",
            "",
            "pack desk 1.0.0, asked by rule `two` about desk.pay: REFUSE",
        ]
        assert told.plain()["packs"][0]["steps"][1] == {
            "phase": "business",
            "outcome": "match",
            "guard": "teller",
        }


class TestCases:
    CASE = b"""
bundle:
  policy_id: p
  mode: guardrails
  rules:
    - rule_id: desk
      kind: kernel
      effect: {kernel: {pack: desk, intent: desk.pay}}
calls:
  - {server: bank, tool: pay, args: {say: REFUSE}, want: {action: BLOCK, rule_id: desk}}
  - {server: bank, tool: pay, args: {}, want: {action: ALLOW}}
  - {server: bank, tool: pay, args: {say: ESCALATE}, granted: [desk], want: {action: ALLOW}}
"""

    def test_cases_ask_the_pack(self) -> None:
        (case,) = parse_cases(self.CASE, "cases.yaml", find_desk)
        ((layer, loaded),) = case.policies
        assert not isinstance(loaded, str)
        snapshot = compile_bundle(loaded.bundle)
        result = run_case(case, [(layer, snapshot)], None, teller_of)
        assert result.failures == []
        assert result.matched == {(snapshot.policy_hash, "desk")}
        alone = run_case(case, [(layer, snapshot)])
        assert len(alone.failures) == 2, "nobody answers"


class TestPromote:
    CALL = RefusedCall("bank", "pay", {"say": "REFUSE"}, Identity(), 0)

    def test_a_kernel_rule_cannot_be_promoted(self) -> None:
        with pytest.raises(SubluminalError, match="leaves the decision to the pack `desk`") as told:
            refusing_rule(filled(ASK), "desk", "desk.no")
        assert told.value.hint is not None
        assert "`sub approve`" in told.value.hint

    def test_an_exception_for_another_rule_also_passes_the_pack(self) -> None:
        made = filled(rule("deny"), ASK, rule("allow"))
        assert also_passed(made.rules, 0, made.rules[0].match) == ["desk"]

    def test_the_pack_is_asked_about_the_refused_call(self) -> None:
        assert decide(policy(ASK), self.CALL, teller_of).reason_code == "desk.no"
