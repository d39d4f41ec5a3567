"""The engine: what it says of its layers, what a call leaves behind, and what happens on failure."""

import pytest
from tests.policy.bundles import bundle, rule, tools
from tests.requirements import requirement

from subluminal.contracts.counters import CellKind
from subluminal.contracts.decision import Decision
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Env, Layer, Mode, ReasonCode, Severity, Status
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import NO_POLICY, Call, Engine
from subluminal.policy.refusing import client_may_ask

CALL = Call("git", "push", {"a": 1}, "ab" * 32)
PROD_ONLY = {"env": ["prod"]}


def engine(*layers, identity=None):
    """An engine of (layer, bundle) pairs."""
    compiled = [(Layer(name), compile_bundle(each)) for name, each in layers]
    return Engine(compiled, identity or Identity(env=Env.CI))


def alone(*rules, **changes):
    return engine(("user", bundle(*rules, **changes)))


def evaluate(it, call=CALL, counters=None, **more):
    return it.evaluate(call, counters or MemoryCounters(), wall_ms=0, mono_ms=0, **more)


class TestLayers:
    def test_without_any_layer_everything_is_observed_and_allowed(self):
        """policy-layers."""
        nobody = engine()
        found = evaluate(nobody)

        assert (found.decision.action, found.policy) == (Action.ALLOW, NO_POLICY)
        assert found.decision.reason_code == ReasonCode.DEFAULT_ALLOW
        assert (nobody.mode, nobody.policy, nobody.policies) == (Mode.OBSERVE, NO_POLICY, [])

    def test_a_policy_that_does_not_apply_is_named_and_enforces_nothing(self):
        it = alone(rule("deny"), selectors=PROD_ONLY, mode="control")
        found = evaluate(it)

        assert found.decision.reason_code == ReasonCode.POLICY_NOT_APPLICABLE
        assert found.policy.policy_id == "p"
        assert found.forwarded
        assert (it.mode, it.policy.policy_id) == (Mode.OBSERVE, "p")
        assert it.applying == []

    def test_the_deciding_layer_is_named_and_all_are_listed(self):
        it = engine(
            ("managed", bundle(policy_id="m", mode="observe")),
            ("user", bundle(rule("deny"), policy_id="u", mode="control")),
            ("repository", bundle(policy_id="r", selectors=PROD_ONLY)),
        )
        found = evaluate(it)

        assert found.policy.policy_id == "u"
        assert [(each.layer, each.policy_id) for each in it.policies] == [
            ("managed", "m"),
            ("user", "u"),
            ("repository", "r"),
        ]
        assert it.applying == [Layer.MANAGED, Layer.USER]
        assert it.mode is Mode.CONTROL
        assert it.policy.policy_id == "m"

    def test_risk_classes_of_all_layers_are_joined(self):
        it = engine(
            ("user", bundle(rule("tag", add_risk_class=["write_like"]))),
            ("repository", bundle(rule("tag", add_risk_class=["money"]))),
        )

        assert evaluate(it).risk_classes == {"write_like", "money"}

    def test_risk_classes_that_depend_on_arguments_are_reported(self):
        by_args = rule("tag", "t", add_risk_class=["big"], match={"args": {"has_keys": ["a"]}})
        it = alone(rule("tag", add_risk_class=["write_like"]), by_args)

        assert evaluate(it).risk_classes == {"write_like", "big"}
        assert evaluate(it, Call("git", "push", {}, "00" * 32)).risk_classes == {"write_like"}


class TestWhatACallLeavesBehind:
    def test_updates_wait_for_the_caller(self):
        it, counters = alone(rule("budget", limit_calls=1)), MemoryCounters()

        for _ in range(3):
            assert evaluate(it, counters=counters).forwarded
        counters.write(evaluate(it, counters=counters).updates)

        assert not evaluate(it, counters=counters).forwarded

    def test_a_trip_says_what_tripped(self):
        it = alone(
            rule("breaker", repeat_threshold=1, repeat_window_ms=50, on_trip="TERMINATE_RUN")
        )
        (trip,) = evaluate(it).trips

        assert (trip.rule_id, trip.cause, trip.count) == ("breaker", "repeats", 1)
        assert trip.action is Action.TERMINATE_RUN

    @pytest.mark.parametrize(
        ("fields", "cause"),
        [
            ({"error_threshold": 1, "window_ms": 9}, "errors"),
            ({"latency_threshold_ms": 5, "latency_count": 1, "window_ms": 9}, "latency"),
        ],
    )
    def test_counted_errors_trip_and_are_reported(self, fields, cause):
        breaker = rule("breaker", repeat_threshold=..., repeat_window_ms=..., **fields)
        it, counters = alone(breaker), MemoryCounters()
        found = evaluate(it, counters=counters)
        counters.write(it.outcome(found, Status.TIMEOUT, 6, counters, mono_ms=0))

        (trip,) = evaluate(it, counters=counters).trips

        assert (trip.cause, trip.count) == (cause, 1)
        assert found.is_watched == (cause == "latency")

    def test_breakers_do_not_count_refused_calls(self):
        window = {"error_threshold": 1, "window_ms": 9}
        breaker = rule("breaker", repeat_threshold=..., repeat_window_ms=..., **window)
        it, counters = alone(rule("deny"), breaker), MemoryCounters()
        found = evaluate(it, counters=counters)

        assert it.outcome(found, Status.ERROR, 0, counters, mono_ms=0) == []

    def test_the_grants_that_were_used_are_told(self):
        it = alone(rule("deny", "ask", require="approval"))
        granted = frozenset({("user", "ask"), ("user", "other"), ("managed", "ask")})
        found = evaluate(it, Call("git", "push", {}, "00" * 32, granted))

        assert found.grants_used == [("user", "ask")]
        assert found.decision.reason_code == ReasonCode.APPROVAL_GRANTED

    def test_a_grant_of_another_layer_does_not_count(self):
        it = alone(rule("deny", "ask", require="approval"))
        found = evaluate(it, Call("git", "push", {}, "00" * 32, frozenset({("managed", "ask")})))

        assert not found.forwarded

    def test_a_grant_for_one_call_does_not_pass_a_rule_that_asks_nobody(self):
        granted = frozenset({("user", "deny")})
        assert not evaluate(alone(rule("deny")), Call("g", "p", {}, "00" * 32, granted)).forwarded

    @pytest.mark.parametrize("asks", [None, "approval"])
    def test_a_lifted_rule_lets_every_call_pass_and_other_rules_stand(self, asks):
        """`sub promote --session`: no exemption from dedupe, unlike a grant for one call."""
        it, counters = alone(rule("deny", require=asks), rule("dedupe")), MemoryCounters()
        lifted = Call("git", "push", {}, "00" * 32, lifted=frozenset({("user", "deny")}))
        first = evaluate(it, lifted, counters=counters)
        counters.write(first.updates)

        assert first.decision.reason_code == ReasonCode.APPROVAL_GRANTED
        assert first.grants_used == [("user", "deny")]
        assert not evaluate(it, lifted, counters=counters).forwarded

    def test_the_layer_that_a_grant_satisfied_says_why_a_call_passes(self):
        it = engine(("managed", bundle()), ("user", bundle(rule("deny", "ask", require="human"))))
        granted = frozenset({("user", "ask")})
        found = evaluate(it, Call("git", "push", {}, "00" * 32, granted))

        assert found.decision.reason_code == ReasonCode.APPROVAL_GRANTED

    @pytest.mark.parametrize(
        ("layer", "asks", "may"),
        [
            ("user", "approval", True),
            ("repository", "confirmation", True),
            ("managed", "approval", False),
            ("user", "ticket", False),
            ("user", "step_up", False),
            ("user", "human", False),
        ],
    )
    def test_what_the_client_may_ask_its_own_person(self, layer, asks, may):
        it = engine((layer, bundle(rule("allow", "ask", require=asks))))
        (asking,) = evaluate(it).refused_by

        assert client_may_ask(asking) is may

    def test_the_rule_that_refuses_is_told_with_what_it_asks(self):
        it = alone(rule("allow", "ask", require="ticket", approver_role="sre", expires_ms=5))
        (asking,) = evaluate(it).refused_by

        assert asking.grant_key == ("user", "ask")
        assert (asking.requirement, asking.approver_role, asking.grant_ms) == ("ticket", "sre", 5)
        (denying,) = evaluate(alone(rule("deny"))).refused_by
        assert denying.requirement is None
        assert not evaluate(alone(rule("allow"))).refused_by

    def test_observe_mode_never_asks_for_approval(self):
        asks = rule("deny", "ask", require="approval")
        it = engine(("managed", bundle(asks)), ("user", bundle(asks, mode="observe")))

        assert [each.grant_key for each in evaluate(it).refused_by] == [("managed", "ask")]

    def test_a_reload_keeps_counters_and_another_rule_never_shares_them(self):
        """shared-runs: keyed by layer, policy, rule and scope."""
        counters = MemoryCounters()
        counters.write(evaluate(alone(rule("budget", limit_calls=1)), counters=counters).updates)

        again = alone(rule("deny", match=tools("x")), rule("budget", limit_calls=1))
        assert not evaluate(again, counters=counters).forwarded
        for other in (
            alone(rule("budget", "other", limit_calls=1)),
            alone(rule("budget", limit_calls=1), policy_id="q"),
            alone(rule("budget", limit_calls=1, scope="tool")),
            engine(("repository", bundle(rule("budget", limit_calls=1)))),
        ):
            assert evaluate(other, counters=counters).forwarded

    @pytest.mark.parametrize(("was", "now"), [(3, 100), (100, 3)])
    def test_a_reload_to_another_kind_of_window_does_not_misread_the_old_one(self, was, now):
        counters = MemoryCounters()
        for threshold in (was, now, now):
            it = alone(rule("breaker", repeat_threshold=threshold, repeat_window_ms=60))
            found = evaluate(it, counters=counters)
            assert found.forwarded
            counters.write(found.updates)

    def test_cost_stops_at_its_ceiling_and_calls_go_on(self):
        budget = rule("budget", limit_calls=7, limit_cost_units=..., cost_units_per_call=10**12)
        it, counters = alone(budget), MemoryCounters()
        ((kind, key, _),) = evaluate(it).updates
        counters.write([(kind, key, (6, 1 << 61))])

        seventh = evaluate(it, counters=counters)
        counters.write(seventh.updates)

        assert seventh.forwarded
        assert counters.read(CellKind.PAIR, key) == (7, 1 << 61)
        assert not evaluate(it, counters=counters).forwarded


@pytest.mark.parametrize("name", ["n" * 257, "\ud800", "a\udfff", "ö" * 128 + "o"])
def test_a_name_that_no_pattern_can_be_asked_about_is_an_evaluation_error(name):
    it = alone(rule("deny", match={"tool_name": {"regex": ["x"]}}))

    for call in (Call(name, "t", {}, "00" * 32), Call("s", name, {}, "00" * 32)):
        decision = evaluate(it, call).decision
        assert (decision.action, decision.rule_id) == (Action.BLOCK, None)
        assert decision.reason_code == ReasonCode.EVALUATION_ERROR


def test_a_long_name_of_any_letters_is_a_name():
    it = alone(rule("deny", match={"tool_name": {"regex": ["^ö+$"]}}))

    assert evaluate(it, Call("s", "ö" * 128, {}, "00" * 32)).decision.rule_id == "deny"


def test_the_rules_of_tools_that_an_agent_makes_up_do_not_pile_up():
    it = alone(*[rule("budget", f"r{number}") for number in range(1_000)])
    (program,) = it._programs

    for number in range(50):
        it.prepare(Call("s", f"t{number}", {}, "00" * 32))

    assert sum(len(rules.entries) for rules in program.tool_rules.values()) < 20_000


class TestFailure:
    """Something other than the policy failed: the journal, the lock, the message."""

    def fail(self, it, call=CALL):
        return it.failure(call, ReasonCode.JOURNAL_UNAVAILABLE, "the disk is full")

    @requirement("2.1:decision-on-error")
    @pytest.mark.parametrize(
        ("mode", "on_error", "action"),
        [
            ("guardrails", "BLOCK", Action.BLOCK),
            ("guardrails", "ALLOW", Action.ALLOW),
            ("control", "BLOCK", Action.REJECT_WITH_HINT),
            ("observe", "BLOCK", Action.ALLOW),
        ],
    )
    def test_decision_on_error_is_applied(self, mode, on_error, action):
        found = self.fail(alone(mode=mode, defaults={"decision_on_error": on_error}))

        assert found.decision.action is action
        assert found.decision.reason_code == ReasonCode.JOURNAL_UNAVAILABLE
        assert found.forwarded is (action is Action.ALLOW)
        assert found.updates == []

    def test_fail_open_read_tools_is_honoured_by_name(self):
        defaults = {"decision_on_error": "BLOCK", "fail_open_read_tools": True}
        it = alone(rule("tag", add_risk_class=["read_like"], match=tools("get")), defaults=defaults)

        assert self.fail(it, Call("s", "get", None, "00" * 32)).forwarded
        assert not self.fail(it, Call("s", "put", None, "00" * 32)).forwarded
        assert not self.fail(it, Call("s", "n" * 2_000, None, "00" * 32)).forwarded

    def test_an_ambiguous_message_is_never_taken_for_a_read(self):
        defaults = {"decision_on_error": "BLOCK", "fail_open_read_tools": True}
        it = alone(rule("tag", add_risk_class=["read_like"]), defaults=defaults)

        found = it.failure(CALL, ReasonCode.AMBIGUOUS_MESSAGE, "two keys of one name")

        assert not found.forwarded

    def test_the_strictest_enforcing_layer_decides(self):
        it = engine(
            ("managed", bundle(policy_id="m", defaults={"decision_on_error": "ALLOW"})),
            ("user", bundle(policy_id="u")),
            ("repository", bundle(policy_id="r", mode="observe")),
        )
        found = self.fail(it)

        assert (found.decision.action, found.policy.policy_id) == (Action.BLOCK, "u")

    def test_without_a_layer_the_call_passes(self):
        found = self.fail(engine())

        assert (found.forwarded, found.policy) == (True, NO_POLICY)
        assert found.decision.summary == "the disk is full"

    @pytest.mark.parametrize("layers", [[], [("user", bundle(policy_id="u"))]])
    def test_a_refusal_that_no_rule_made_names_the_first_policy(self, layers):
        decision = Decision(
            action=Action.TERMINATE_RUN,
            rule_id=None,
            severity=Severity.CRITICAL,
            reason_code=ReasonCode.KILL_SWITCH,
            summary="someone pulled it",
        )
        found = engine(*layers).refusal(decision)

        assert (found.decision, found.forwarded) == (decision, False)
        assert found.policy.policy_id == ("u" if layers else "none")
