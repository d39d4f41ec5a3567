"""Rules ask who acts: environment, type, trust, roles, registration, delegation (trust T1, 2)."""

import subprocess
import sys

import pytest
from tests.policy.bundles import bundle, rule, tools
from tests.requirements import requirement

from subluminal.contracts.agents import AgentFacts, Claims
from subluminal.contracts.call import Given
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.identity import Identity
from subluminal.contracts.intents import Judgement
from subluminal.contracts.vocabulary import Action, Env, Layer, Mode, ReasonCode, Taint, TrustLevel
from subluminal.policy.compiling import bundle_of, compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.explaining import as_text, explain, with_disabled
from subluminal.policy.pack_engine import PackEngine
from subluminal.policy.snapshot import TRUST_FORMAT

CI = Identity(env=Env.CI)
FIXER = AgentFacts(
    registered=True,
    agent_type="pr_agent",
    trust_level=TrustLevel.VERIFIED,
    trust_after_denials=TrustLevel.BASIC,
    roles=("fix", "review"),
    delegation_depth=1,
)
NOBODY = AgentFacts()


def snapshot(*rules, **changes):
    return compile_bundle(bundle(*rules, **changes))


def engine(*rules, agent=FIXER, identity=CI, **changes):
    return Engine([(Layer.USER, snapshot(*rules, **changes))], identity, agent=agent)


class Run:
    """Calls of one run, with counters of its own."""

    def __init__(self, it):
        self.engine = it
        self.counters = MemoryCounters()

    def call(self, tool="push", steps=None, **more):
        call = Call("git", tool, {}, "ab" * 32, **more)
        found = self.engine.evaluate(call, self.counters, wall_ms=0, mono_ms=0, steps=steps)
        self.counters.write(found.updates)
        return found

    def claim(self, tool="push", steps=None, **claims):
        return self.call(tool, steps, given=Given(claims=Claims(**claims)))


def refuses(it, **more):
    return not Run(it).call(**more).forwarded


@requirement("trust:settled-matchers")
@pytest.mark.parametrize(
    ("match", "fixer", "nobody"),
    [
        ({"environment": ["ci"]}, True, True),
        ({"environment": ["prod", "dev"]}, False, False),
        ({"agent_type": ["ide_agent", "pr_agent"]}, True, False),
        ({"agent_type": ["ide_agent"]}, False, False),
        ({"trust_level_min": "untrusted"}, True, True),
        ({"trust_level_min": "verified"}, True, False),
        ({"trust_level_min": "privileged"}, False, False),
        ({"agent_roles_any": ["deploy", "fix"]}, True, False),
        ({"agent_roles_any": ["deploy"]}, False, False),
        ({"registered": True}, True, False),
        ({"registered": False}, False, True),
        ({"delegation_depth_min": 0}, True, True),
        ({"delegation_depth_min": 1}, True, False),
        ({"delegation_depth_min": 2}, False, False),
        ({"environment": [], "agent_type": [], "agent_roles_any": []}, True, True),
    ],
)
def test_each_matcher(match, fixer, nobody):
    denying = rule("deny", match=match)
    assert refuses(engine(denying)) is fixer
    assert refuses(engine(denying, agent=NOBODY)) is nobody


def test_a_rule_about_others_costs_nothing_for_a_call():
    it = engine(rule("deny", match={"registered": False}), rule("deny", "b", match=tools("x")))
    (program,) = it._programs
    assert [each.data["rule_id"] for each in program.rules] == ["b"]


@requirement("trust:environment-as-written")
def test_the_environment_is_compared_as_written_and_else_as_found_out():
    denying = rule("deny", match={"environment": ["Staging EU"]})
    written = Identity(env=Env.UNKNOWN, environment="Staging EU")
    assert refuses(engine(denying, identity=written))
    assert not refuses(engine(denying, identity=Identity(env=Env.UNKNOWN)))
    assert refuses(engine(rule("deny", match={"environment": ["unknown"]}), identity=Identity()))


@pytest.mark.parametrize(
    ("match", "asks"),
    [
        ({"environment": ["prod"]}, False),
        ({"agent_type": ["x"]}, True),
        ({"trust_level_min": "basic"}, True),
        ({"agent_roles_any": ["x"]}, True),
        ({"registered": False}, True),
        ({"delegation_depth_min": 1}, True),
        ({"tool_provider": ["mcp"]}, False),
        ({}, False),
    ],
)
def test_asks_agent_only_if_a_rule_asks_for_facts_of_the_registry(match, asks):
    assert engine(rule("deny", match=match), agent=NOBODY).asks_agent is asks
    elsewhere = engine(rule("deny", match=match), selectors={"env": ["prod"]})
    assert not elsewhere.asks_agent


def test_a_snapshot_with_these_matchers_is_read_back():
    match = {
        "environment": ["prod", "ci"],
        "registered": False,
        "delegation_depth_min": 2,
        "context": {"key_equals": {"a": 1}},
    }
    compiled = snapshot(rule("deny", match=match))
    assert compiled.data["format"] == TRUST_FORMAT
    assert compile_bundle(bundle_of(compiled)).policy_hash == compiled.policy_hash


LAZY = ("agents", "claims", "denials", "given")


@requirement("trust:free-when-unused")
@pytest.mark.parametrize(
    ("match", "loaded"),
    [
        ({"tool_name": {"glob": ["a*"]}}, set()),
        ({"tool_provider": ["mcp"]}, {"given"}),
        ({"registered": True}, {"agents", "claims", "denials"}),
    ],
)
def test_a_shim_loads_what_its_rules_ask_for_and_nothing_else(match, loaded):
    """Start-up is a feature (fast-start)."""
    text = snapshot(rule("deny", match=match)).to_json()
    script = f"""
import sys
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.snapshot import Snapshot
engine = Engine([(Layer.USER, Snapshot.from_json({text!r}))], Identity())
engine.evaluate(Call("git", "push", {{}}, "ab" * 32), MemoryCounters(), wall_ms=0, mono_ms=0)
print(*(name for name in {LAZY!r} if f"subluminal.policy.{{name}}" in sys.modules))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == loaded


class TestRefusalsInARow:
    RULES = (
        rule("allow", "trusted", match={"trust_level_min": "verified", **tools("deploy")}),
        rule("allow", "reads", match=tools("read")),
        rule("deny", "else"),
    )

    @requirement("trust:denials-cost-trust")
    def test_more_than_three_cost_trust_until_a_call_is_forwarded(self):
        run = Run(engine(*self.RULES))
        for _ in range(3):
            assert not run.call("rm").forwarded
        assert run.call("deploy").forwarded
        for _ in range(4):
            run.call("rm")
        assert run.call("deploy").decision.rule_id == "else"
        assert run.call("deploy").decision.rule_id == "else"
        assert run.call("read").forwarded
        assert run.call("deploy").forwarded

    @pytest.mark.parametrize(
        "facts",
        [
            AgentFacts(trust_level=TrustLevel.BASIC, trust_after_denials=TrustLevel.BASIC),
            AgentFacts(trust_level=TrustLevel.SYSTEM, trust_after_denials=TrustLevel.VERIFIED),
        ],
    )
    def test_nothing_is_counted_if_no_rule_can_tell(self, facts):
        run = Run(engine(*self.RULES, agent=facts))
        assert run.call("rm").updates == []

    def test_the_count_does_not_grow_for_ever(self):
        run = Run(engine(*self.RULES))
        counted = [run.call("rm").updates for _ in range(6)]
        assert [each[0][2] for each in counted[:4]] == [(1,), (2,), (3,), (4,)]
        assert counted[4:] == [[], []]
        assert [each[2] for each in run.call("read").updates] == [(0,)]
        assert run.call("read").updates == []

    def test_observe_mode_forwards_so_nothing_is_lost(self):
        run = Run(engine(*self.RULES, mode="observe"))
        for _ in range(5):
            run.call("rm")
        assert run.call("deploy").would_be is None

    def test_a_policy_that_does_not_apply_counts_nothing(self):
        run = Run(engine(*self.RULES, selectors={"env": ["prod"]}))
        assert run.call("rm").updates == []

    def test_what_both_levels_may_do_is_known_in_advance(self):
        tagging = rule("tag", match={"trust_level_min": "verified"}, add_risk_class=["read_like"])
        lowering = {
            "match": {"trust_level_min": "verified"},
            "lower_to": "SYSTEM",
        }
        it = engine(
            tagging,
            rule("taint", "exempt", **lowering),
            rule("taint", "lower"),
            defaults={"decision_on_error": "BLOCK", "fail_open_read_tools": True},
        )
        call = Call("git", "push", None, "ab" * 32)
        failed = it.failure(call, ReasonCode.EVALUATION_ERROR, "")
        assert failed.decision.action is Action.BLOCK
        assert it.read_from("git") == (Taint.UNTRUSTED, "lower")
        assert it.unjudged("git", "push") is Taint.UNTRUSTED

    def test_the_counter_is_one_for_all_layers(self):
        layers = [
            (Layer.USER, snapshot(*self.RULES)),
            (Layer.REPOSITORY, snapshot(*self.RULES, policy_id="q")),
        ]
        it = Engine(layers, CI, agent=FIXER)
        found = Run(it).call("rm")
        assert len(found.updates) == 1

    def test_calls_that_are_refused_whatever_the_rules_say_count_too(self):
        run = Run(engine(*self.RULES))
        run.counters.write(run.engine.refused_anyway(run.counters, 3))
        assert run.call("deploy").forwarded
        run.counters.write(run.engine.refused_anyway(run.counters, 9))
        assert not run.call("deploy").forwarded
        assert engine(rule("deny")).refused_anyway(run.counters, 3) == []

    def test_a_pack_that_refuses_counts_too(self):
        ref = PolicyRef(policy_id="pack", policy_version="1", policy_hash="0" * 64)
        it = PackEngine([(Layer.USER, snapshot(*self.RULES))], CI, agent=FIXER, pack=ref)
        found = Run(it).call("read")
        assert not found.forwarded  # nobody asked the pack
        assert [each[2] for each in found.updates] == [(1,)]
        passed = Run(it).call("read", judgement=Judgement(refusal=None, kernel=None))
        assert passed.forwarded
        assert passed.updates == []


class TestClaims:
    def test_a_claim_cannot_open(self):
        """Upstream lets the caller's own word win: a self-escalation."""
        it = engine(
            rule("allow", match={"trust_level_min": "system", "agent_roles_any": ["root"]}),
            rule("deny", "else"),
            agent=NOBODY,
        )
        found = Run(it).claim(trust_level=TrustLevel.SYSTEM, roles=("root",))
        assert found.decision.rule_id == "else"

    @requirement("trust:claims-tighten")
    def test_a_claim_can_close(self):
        denying = rule("deny", match={"environment": ["prod"], "delegation_depth_min": 3})
        run = Run(engine(denying))
        assert run.call().forwarded
        assert not run.claim(environment="prod", delegation_depth=3).forwarded
        assert run.claim(environment="prod").forwarded

    def test_a_claimed_environment_meets_the_selectors(self):
        run = Run(engine(rule("deny"), selectors={"env": ["prod"]}))
        assert run.call().decision.reason_code == ReasonCode.POLICY_NOT_APPLICABLE
        refused = run.claim(environment="prod")
        assert (refused.decision.rule_id, refused.policy.policy_id) == ("deny", "p")
        passed = run.claim(environment="elsewhere")
        assert passed.decision.reason_code == ReasonCode.POLICY_NOT_APPLICABLE

    def test_a_claimed_trust_holds_after_refusals_too(self):
        rules = (rule("deny", match={"trust_level_min": "system"}), *TestRefusalsInARow.RULES)
        run = Run(engine(*rules))
        for _ in range(5):
            run.call("rm")
        found = run.claim("read", trust_level=TrustLevel.SYSTEM)
        assert found.decision.rule_id == "deny"

    def test_nothing_is_evaluated_again_if_the_claims_change_nothing(self):
        steps = []
        it = engine(rule("deny", match={"environment": ["prod"]}))
        Run(it).claim(steps=steps, environment="dev", roles=("x",))
        assert [step.claimed for step in steps] == [False]

    def test_a_claim_of_another_program_needs_its_targets_and_its_pack(self):
        it = engine(
            rule("deny", match={"environment": ["prod"], "targets": {"opaque": True}}),
            rule("kernel", match={"environment": ["prod"]}),
        )
        silent = Call("git", "push", {}, "ab" * 32)
        claimed = Call("git", "push", {}, "ab" * 32, given=Given(claims=Claims(environment="prod")))
        assert not it.asks_targets
        assert not it.asks_kernel
        assert [it.needs_targets(silent), it.needs_judge(silent)] == [False, False]
        assert [it.needs_targets(claimed), it.needs_judge(claimed)] == [True, True]

    def test_what_cannot_be_decided_is_decided_with_the_claims_too(self):
        """A tag that claims take away does not open a failed call."""
        it = engine(
            rule("tag", match={"environment": ["ci"]}, add_risk_class=["read_like"]),
            defaults={"decision_on_error": "BLOCK", "fail_open_read_tools": True},
        )
        silent = Call("git", "push", {}, "ab" * 32)
        claimed = Call("git", "push", {}, "ab" * 32, given=Given(claims=Claims(environment="dev")))
        for call, action in ((silent, Action.ALLOW), (claimed, Action.BLOCK)):
            failed = it.failure(call, ReasonCode.EVALUATION_ERROR, "")
            assert failed.decision.action is action

    def test_engines_keep_few_claims(self):
        run = Run(engine(rule("deny", match={"environment": ["e7"]})))
        for number in range(200):
            assert run.claim(environment=f"e{number}").forwarded is (number != 7)
        assert len(run.engine._variants._found) <= 64

    def test_engines_keep_few_programs(self):
        """Each claimed set of roles has rules of its own."""
        rules = [rule("deny", f"r{n}", match={"agent_roles_any": [f"r{n}"]}) for n in range(80)]
        run = Run(engine(*rules))
        for number in range(80):
            assert run.claim(roles=(f"r{number}",)).decision.rule_id == f"r{number}"
        assert len(run.engine._variants._made) <= 64

    def test_claims_that_the_same_rules_are_about_share_a_program(self):
        run = Run(engine(rule("deny", match={"environment": ["prod"]})))
        for agent_type in ("a", "b"):
            assert not run.claim(environment="prod", agent_type=agent_type).forwarded
        assert len(run.engine._variants._made) == 1

    def test_packs_are_asked_for_both_levels_of_trust(self):
        rules = (rule("kernel", match={"trust_level_min": "verified"}), rule("deny"))
        it = engine(*rules)
        claims = Claims(environment="prod")
        call = Call("git", "push", {}, "ab" * 32, given=Given(claims=claims))
        assert it.needs_judge(call)

    def test_observe_mode_says_what_the_claims_would_have_done(self):
        run = Run(engine(rule("deny", match={"environment": ["prod"]}), mode="observe"))
        found = run.claim(environment="prod")
        assert found.forwarded
        assert found.would_be.rule_id == "deny"
        assert run.engine.mode is Mode.OBSERVE

    def test_a_grant_for_the_rule_that_claims_met_lets_the_call_pass(self):
        asking = rule("deny", match={"environment": ["prod"]}, require="approval")
        run = Run(engine(asking))
        refused = run.claim(environment="prod")
        assert [each.grant_key for each in refused.refused_by] == [("user", "deny")]
        passed = run.call(
            granted=frozenset({("user", "deny")}), given=Given(claims=Claims(environment="prod"))
        )
        assert (passed.forwarded, passed.grants_used) == (True, [("user", "deny")])
        assert passed.decision.reason_code == ReasonCode.APPROVAL_GRANTED

    @requirement("trust:claims-count-once")
    def test_what_both_evaluations_leave_behind_is_left_once(self):
        rules = (
            rule("budget", limit_calls=9),
            rule("taint"),
            rule("breaker", error_threshold=1, window_ms=1000, repeat_threshold=2),
            rule("deny", "asks", match=tools("rm"), require="approval"),
            rule("deny", "prod", match={"environment": ["prod"], **tools("x")}),
        )
        run = Run(engine(*rules))
        alone = Run(engine(*rules)).call("rm", excused=frozenset({("user", "budget")}))
        found = run.claim("rm", environment="prod")
        assert found.updates == alone.updates
        assert [each.grant_key for each in found.refused_by] == [("user", "asks")]
        again = run.claim("rm", environment="prod")
        assert len(again.trips) == 1
        assert again.limited_by == [("user", "breaker")]
        passed = run.claim("ls", environment="prod")
        assert len(passed.visits) == 2
        assert sum(len(visit.watches) for visit in passed.visits) == 1

    def test_the_lowest_level_of_both_holds(self):
        rules = (
            rule("taint", "mild", match={"environment": ["ci"]}, lower_to="TRUSTED"),
            rule("taint", "hard"),
        )
        found = Run(engine(*rules)).claim(environment="prod")
        assert found.lowered_by == "hard"
        lower_first = (
            rule("taint", "mild", match={"environment": ["prod"]}, lower_to="TRUSTED"),
            rule("taint", "hard"),
        )
        run = Run(engine(*lower_first))
        assert run.claim(environment="prod").lowered_by == "hard"


class TestExplained:
    @requirement("trust:explain-agents")
    @pytest.mark.parametrize(
        ("match", "agent", "why"),
        [
            ({"environment": ["prod"]}, FIXER, "the environment is ci"),
            ({"registered": True}, NOBODY, "the agent is not registered"),
            ({"registered": False}, FIXER, "the agent is registered"),
            ({"agent_type": ["x"]}, FIXER, "the agent is a pr_agent"),
            ({"agent_type": ["x"]}, NOBODY, "the agent has no type"),
            ({"agent_roles_any": ["x"]}, FIXER, "the agent has the roles fix, review"),
            ({"agent_roles_any": ["x"]}, NOBODY, "the agent has no roles"),
            ({"trust_level_min": "system"}, FIXER, "the trust in the agent is verified"),
            ({"delegation_depth_min": 4}, FIXER, "the depth of delegation is 1"),
        ],
    )
    def test_why_a_rule_was_left_out(self, match, agent, why):
        steps = []
        rules = (rule("tag", "first"), rule("deny", match=match), rule("deny", "last"))
        Run(engine(*rules, agent=agent)).call(steps=steps)
        assert [step.rule_id for step in steps] == ["first", "deny", "last"]
        (clause,) = match
        assert steps[1][3:5] == ("no match", clause)
        assert steps[1].note == why
        assert [steps[0].result, steps[2].result] == ["matched", "matched"]

    @pytest.mark.parametrize(
        ("claims", "told"),
        [
            ({"environment": "prod"}, "without that it is ALLOW"),
            ({"environment": "dev"}, None),
            ({}, None),
        ],
    )
    def test_what_claims_changed(self, claims, told):
        written = bundle(
            rule("deny", match={"environment": ["prod"]}), rule("deny", "off", enabled=False)
        )
        found = explain(
            compile_bundle(written),
            CI,
            ("git", "push", {}),
            wall_ms=0,
            agent=FIXER,
            given=Given(claims=Claims(**claims)),
        )
        steps = with_disabled(found.steps, written.rules)
        lines = as_text(found._replace(steps=steps))
        assert any("because of what the caller claims" in line for line in lines) is bool(told)
        assert ("rules, if what the caller claims were true:" in lines) is bool(told)
        assert [step.rule_id for step in steps] == ["deny", "off"] * (2 if told else 1)
        assert found.plain()["on_facts"]["action"] == "ALLOW"

    def test_a_clause_is_named_even_if_the_arguments_were_too_large(self):
        steps = []
        it = engine(rule("deny", match={"data_labels_any": ["x"], "args": {"has_keys": ["a"]}}))
        call = Call("git", "push", None, "ab" * 32)
        it.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0, steps=steps)
        assert steps[0].clause == "data_labels_any"


class TestGiven:
    @requirement("trust:given-matchers")
    @pytest.mark.parametrize(
        ("match", "given", "provider", "matches"),
        [
            ({"tool_provider": ["mcp"]}, None, "mcp", True),
            ({"tool_provider": ["langchain", "built-in"]}, None, "built-in", True),
            ({"tool_provider": ["langchain"]}, None, "mcp", False),
            ({"data_labels_any": ["pii"]}, None, "mcp", False),
            ({"data_labels_any": ["pii"]}, Given(labels=frozenset({"pii", "x"})), "mcp", True),
            ({"data_labels_any": ["pii"]}, Given(labels=frozenset({"PII"})), "mcp", False),
            ({"context": {"has_keys": ["a"]}}, None, "mcp", False),
            ({"context": {"key_not_equals": {"a": 1}}}, None, "mcp", True),
            ({"context": {"key_equals": {"a": 1}}}, Given(context={"a": 1}), "mcp", True),
            ({"context": {}}, None, "mcp", True),
            (
                {"context": {"has_keys": ["a"]}, "tool_provider": ["mcp"]},
                Given(context={"a": 1}),
                "x",
                False,
            ),
        ],
    )
    def test_each_matcher(self, match, given, provider, matches):
        steps = []
        run = Run(engine(rule("deny", match=match)))
        found = run.call(given=given, provider=provider, steps=steps)
        assert found.forwarded is not matches
        clause = list(match)[-1]
        assert steps[0].clause == ("" if matches else clause)

    def test_corrected_arguments_are_tested_with_the_same_context(self):
        rules = (
            rule(
                "deny", match={"args": {"has_keys": ["force"]}}, suggest={"force": {"remove": True}}
            ),
            rule("deny", "never", match={"context": {"has_keys": ["frozen"]}}),
        )
        it = engine(*rules)
        counters = MemoryCounters()
        for context, offers in (({}, True), ({"frozen": True}, False)):
            call = Call("git", "push", {"force": True}, "ab" * 32, given=Given(context=context))
            found = it.evaluate(call, counters, wall_ms=0, mono_ms=0)
            assert (found.decision.hint is not None) is offers

    def test_a_taint_rule_about_providers_is_not_about_resources(self):
        it = engine(rule("taint", match={"tool_provider": ["built-in"]}))
        assert it.read_from("git") == (Taint.SYSTEM, None)
