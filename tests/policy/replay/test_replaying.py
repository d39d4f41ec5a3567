"""Replay: recorded calls decided again, with counters, ends and clocks as they were (issue 10)."""

import msgspec
import pytest
from tests.policy.bundles import bundle, rule, tools
from tests.policy.replay.runs import TERMINATED, Record, changes, said_outside

from subluminal.contracts.control import KILLED
from subluminal.contracts.decision import Terminate
from subluminal.contracts.vocabulary import Action, Layer, ReasonCode
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay.comparing import Doubt
from subluminal.policy.replay.hidden_args import PartialArgs
from subluminal.policy.snapshot import Snapshot

USER, REPOSITORY = Layer.USER, Layer.REPOSITORY


def policy(*rules, **more) -> Snapshot:
    return compile_bundle(bundle(*rules, **more))


NO_PUSH = rule("deny", "no-push", match=tools("push"))
EMPTY = policy()


def hidden(*present: str, **known: object) -> PartialArgs:
    """Arguments of which these keys were masked, and the others are known."""
    return PartialArgs(dict(known), frozenset(present).__contains__, frozenset(present))


def test_the_policy_of_the_record_changes_nothing():
    own = policy(
        NO_PUSH,
        rule("budget", limit_calls=4),
        rule("dedupe", match=tools("pull")),
        rule(
            "breaker",
            "errors",
            repeat_threshold=...,
            repeat_window_ms=...,
            error_threshold=2,
            window_ms=50,
        ),
    )
    record = Record((REPOSITORY, own))
    for tool, status in [
        ("push", "OK"),
        ("pull", "OK"),
        ("pull", "OK"),
        ("x", "ERROR"),
        ("y", "ERROR"),
        ("z", "OK"),
    ]:
        record.call(tool, status=status)
    rows, _, _ = record.replay(own)
    assert changes(rows) == ["same"] * 6
    assert [row.now for row in rows] == [row.call.decision.said for row in rows]


def test_differences_and_what_depends_on_them():
    record = Record((REPOSITORY, policy(rule("deny", "no-pull", match=tools("pull")))))
    first = record.call("status")
    second = record.call("push")
    record.call("pull")
    record.call("status")
    rows, _, _ = record.replay(policy(NO_PUSH))
    assert changes(rows) == ["same", "newly_blocked", "newly_allowed", "same"]
    assert [row.depends_on for row in rows] == [None, None, second, second]
    assert first != second
    assert rows[1].plain() == {
        "run_id": "run",
        "call_id": second,
        "seq": 2,
        "server_name": "git",
        "tool_name": "push",
        "change": "newly_blocked",
        "was": {
            "action": "ALLOW",
            "rule_id": None,
            "severity": "info",
            "reason_code": "DEFAULT_ALLOW",
        },
        "now": {"action": "BLOCK", "rule_id": "no-push", "severity": "warn", "reason_code": "NO"},
        "depends_on": None,
    }


def test_another_reason_is_a_change_and_diverges_only_if_the_agent_is_told():
    record = Record((REPOSITORY, policy(NO_PUSH)))
    record.call("pull")
    refused = record.call("push")
    record.call("pull")
    candidate = policy(rule("deny", "other", match=tools("push")), rule("allow", "ok"))
    rows, _, _ = record.replay(candidate)
    assert changes(rows) == ["changed"] * 3
    assert [row.depends_on for row in rows] == [None, None, refused]


def test_observed_runs_show_what_would_be_refused():
    """A candidate that enforces over a run that was observed is the main use."""
    observed = policy(NO_PUSH, mode="observe")
    record = Record((REPOSITORY, observed))
    record.call("push")
    record.call("pull")
    assert changes(record.replay(observed)[0]) == ["same", "same"]
    assert changes(record.replay(policy(NO_PUSH))[0]) == ["newly_blocked", "same"]
    (row, _), _, _ = record.replay(policy(mode="observe"))
    assert row.change == "changed"
    assert row.call.decision.said.plain()["would_be"] == {
        "action": "BLOCK",
        "rule_id": "no-push",
        "reason_code": "NO",
    }


def test_a_changed_backoff_is_a_change():
    limited = policy(rule("rate_limit", capacity=1, refill_period_ms=60_000))
    record = Record((REPOSITORY, EMPTY))
    record.call()
    record.call()
    rows, _, _ = record.replay(limited)
    assert changes(rows) == ["same", "newly_blocked"]
    assert rows[1].now.plain()["backoff_ms"] == 100


def test_breakers_of_the_candidate_count_recorded_ends():
    breaker = rule(
        "breaker", repeat_threshold=..., repeat_window_ms=..., error_threshold=2, window_ms=1000
    )
    record = Record((REPOSITORY, EMPTY))
    record.call("a", status="ERROR")
    record.call("b", status=None)
    record.call("c", status="TIMEOUT")
    record.call("d")
    rows, _, _ = record.replay(policy(breaker))
    assert changes(rows) == ["same", "same", "same", "newly_blocked"]


def test_an_end_that_nobody_counted_is_placed_by_its_latency():
    slow = rule(
        "breaker",
        repeat_threshold=...,
        repeat_window_ms=...,
        latency_threshold_ms=5,
        latency_count=1,
        window_ms=1000,
    )
    record = Record((REPOSITORY, EMPTY))
    record.call("a", latency_ms=9)
    record.items[-1] = record.items[-1]._replace(mono_ms=None)
    record.call("b")
    assert changes(record.replay(policy(slow))[0]) == ["same", "newly_blocked"]


def test_breakers_do_not_count_ends_of_calls_that_the_candidate_refuses():
    record = Record((REPOSITORY, EMPTY))
    record.call("push", status="ERROR")
    record.call("pull")
    candidate = policy(
        NO_PUSH,
        rule(
            "breaker", repeat_threshold=..., repeat_window_ms=..., error_threshold=1, window_ms=1000
        ),
    )
    assert changes(record.replay(candidate)[0]) == ["newly_blocked", "same"]


class TestRunsThatWereEnded:
    ENDS = policy(rule("budget", limit_calls=1, on_exceed="TERMINATE_RUN"))

    def record(self) -> Record:
        record = Record((REPOSITORY, self.ENDS))
        record.call()
        record.call()
        record.call(event=TERMINATED)
        return record

    def test_by_a_rule_that_still_ends_them(self):
        rows, _, _ = self.record().replay(self.ENDS)
        assert changes(rows) == ["same"] * 3

    def test_by_a_rule_that_is_gone(self):
        rows, _, _ = self.record().replay(EMPTY)
        assert changes(rows) == ["same", "newly_allowed", "newly_allowed"]

    def test_by_a_rule_that_is_new(self):
        record = Record((REPOSITORY, EMPTY))
        for _ in range(3):
            record.call()
        rows, _, _ = record.replay(self.ENDS)
        assert changes(rows) == ["same", "newly_blocked", "newly_blocked"]
        assert rows[2].now.reason_code == ReasonCode.RUN_TERMINATED

    @pytest.mark.parametrize("code", [ReasonCode.RUN_TERMINATED, ReasonCode.KILL_SWITCH])
    def test_by_a_person_and_revived(self, code):
        record = Record((REPOSITORY, EMPTY))
        record.call()
        record.call(event=said_outside(code, Action.TERMINATE_RUN))
        record.call()
        assert changes(record.replay(EMPTY)[0]) == ["same", "same", "same"]
        assert changes(record.replay(policy(rule("allow", "ok")))[0]) == [
            "changed",
            "same",
            "changed",
        ]

    def test_by_a_rule_and_by_a_person(self):
        record = self.record()
        killed = msgspec.structs.replace(
            TERMINATED, terminate=Terminate(terminate_code=KILLED, terminate_message="")
        )
        record.call(event=killed)
        assert changes(record.replay(EMPTY)[0])[-1] == "same"


class TestWhatNoRuleDecided:
    def test_a_policy_answers_an_ambiguous_message_with_its_default(self):
        record = Record((REPOSITORY, EMPTY))
        record.call(
            event=said_outside(ReasonCode.AMBIGUOUS_MESSAGE, policies=record.engine.policies)
        )
        assert changes(record.replay(EMPTY)[0]) == ["same"]
        lenient = policy(defaults={"decision_on_error": "ALLOW"})
        assert changes(record.replay(lenient)[0]) == ["newly_allowed"]

    def test_what_could_not_be_evaluated_stands_and_counts_nothing(self):
        record = Record((REPOSITORY, EMPTY))
        record.call(event=said_outside(ReasonCode.EVALUATION_ERROR), seq=0)
        record.call(seq=1)
        assert changes(record.replay(policy(rule("budget", limit_calls=1)))[0]) == ["same", "same"]

    def test_a_name_that_is_too_long_is_asked_again(self):
        record = Record((REPOSITORY, EMPTY))
        record.call("x" * 2000)
        assert changes(record.replay(EMPTY)[0]) == ["same"]
        lenient = policy(defaults={"decision_on_error": "ALLOW"})
        assert changes(record.replay(lenient)[0]) == ["newly_allowed"]

    def test_more_counters_than_a_run_may_have_are_an_error_of_evaluation(self, monkeypatch):
        monkeypatch.setattr("subluminal.policy.counters.MAX_COUNTERS", 1)
        per_tool = policy(rule("budget", scope="tool"))
        record = Record((REPOSITORY, EMPTY))
        record.call("a")
        record.call("b")
        rows, _, _ = record.replay(per_tool)
        assert changes(rows) == ["same", "newly_blocked"]
        assert rows[1].now.reason_code == ReasonCode.EVALUATION_ERROR

    def test_an_end_that_finds_no_room_is_not_learnt(self, monkeypatch):
        watching = policy(
            rule(
                "breaker",
                repeat_threshold=...,
                repeat_window_ms=...,
                error_threshold=1,
                window_ms=99,
            )
        )
        record = Record((REPOSITORY, EMPTY))
        record.call("a", status="ERROR")
        record.call("b")
        monkeypatch.setattr("subluminal.policy.counters.MAX_COUNTERS", 0)
        assert changes(record.replay(watching)[0]) == ["same", "same"]


class TestArgumentsThatAreNotOnRecord:
    PROD = policy(rule("deny", "prod", match={"args": {"key_equals": {"env": "prod"}}}))

    def test_make_a_call_undetermined_if_a_rule_tests_them(self):
        record = Record((REPOSITORY, EMPTY))
        record.call(args={"env": "prod"}, on_record=hidden("env"))
        rows, _, _ = record.replay(self.PROD)
        assert changes(rows) == ["undetermined"]
        assert rows[0].now is None
        assert rows[0].plain()["doubt"] == Doubt.ARGUMENTS
        assert rows[0].plain()["now"] is None

    def test_do_not_matter_if_no_rule_tests_them(self):
        record = Record((REPOSITORY, EMPTY))
        record.call(args={"env": "prod", "x": 1}, on_record=hidden("x", env="prod"))
        assert changes(record.replay(self.PROD)[0]) == ["newly_blocked"]

    def test_do_not_matter_if_all_possibilities_agree(self):
        record = Record((REPOSITORY, EMPTY))
        record.call(args={"env": "prod"}, on_record=hidden("env"))
        shielded = policy(
            rule("allow", "ok"), rule("deny", "prod", match={"args": {"has_keys": ["env"]}})
        )
        assert changes(record.replay(shielded)[0]) == ["changed"]
        refused = policy(NO_PUSH, rule("budget", "b", match={"args": {"has_keys": ["env"]}}))
        assert changes(record.replay(refused)[0]) == ["newly_blocked"]

    def test_make_the_counters_doubtful_that_they_may_have_changed(self):
        counting = policy(
            rule("budget", "b", limit_calls=5, match={"args": {"key_equals": {"env": "prod"}}}),
            rule("dedupe", match=tools("pull")),
        )
        record = Record((REPOSITORY, EMPTY))
        record.call(args={"env": "x"}, on_record=hidden("env"))
        record.call("pull", args={"env": "dev"})
        record.call(args={"env": "prod"})
        record.call(args={"env": "prod"})
        rows, _, _ = record.replay(counting)
        assert changes(rows) == ["same", "same", "undetermined", "undetermined"]
        assert rows[2].doubt is Doubt.COUNTERS

    def test_do_not_matter_to_the_policies_of_the_record(self):
        own = policy(
            rule("deny", "prod", match={"args": {"key_equals": {"env": "prod"}}}),
            rule("budget", "b", limit_calls=1, match={"args": {"has_keys": ["x"]}}),
        )
        record = Record((REPOSITORY, own))
        for args in ({"env": "prod"}, {"env": "dev", "x": 1}, {"x": 2}, {}):
            record.call(args=args, on_record=PartialArgs({}, lambda _key: True))
        rows, _, _ = record.replay(own)
        assert changes(rows) == ["same"] * 4

    def test_with_too_many_possibilities_are_undetermined(self):
        tags = [rule("tag", f"k{i}", match={"args": {"has_keys": [f"k{i}"]}}) for i in range(8)]
        own = policy(*tags, rule("budget", limit_calls=1))
        record = Record((REPOSITORY, own))
        record.call(on_record=PartialArgs({}, lambda _key: True))
        record.call()
        assert changes(record.replay(own)[0]) == ["same", "same"]
        rows, _, _ = record.replay(policy(*tags, rule("budget", limit_calls=2)))
        assert changes(rows) == ["undetermined", "undetermined"]
        assert [row.doubt for row in rows] == [Doubt.ARGUMENTS, Doubt.COUNTERS]

    @pytest.mark.parametrize("on_exceed", ["BLOCK", "TERMINATE_RUN"])
    def test_a_call_that_may_have_ended_the_run_makes_the_rest_undetermined(self, on_exceed):
        counting = policy(
            rule(
                "budget",
                "b",
                limit_calls=0,
                on_exceed=on_exceed,
                match={"args": {"has_keys": ["a"]}},
            )
        )
        record = Record((REPOSITORY, EMPTY))
        record.call(on_record=PartialArgs({}, lambda _key: True))
        record.call()
        after = "undetermined" if on_exceed == "TERMINATE_RUN" else "same"
        assert changes(record.replay(counting)[0]) == ["undetermined", after]

    @pytest.mark.parametrize("on_exceed", ["BLOCK", "TERMINATE_RUN"])
    def test_a_doubtful_counter_may_have_ended_the_run(self, on_exceed):
        counting = policy(
            rule(
                "budget",
                "b",
                limit_calls=1,
                on_exceed=on_exceed,
                match={"args": {"has_keys": ["a"]}},
            )
        )
        record = Record((REPOSITORY, EMPTY))
        record.call(on_record=PartialArgs({}, lambda _key: True))
        record.call(args={"a": 1})
        record.call()
        after = "undetermined" if on_exceed == "TERMINATE_RUN" else "same"
        assert changes(record.replay(counting)[0]) == ["same", "undetermined", after]

    def test_too_large_to_inspect_then_is_so_now(self):
        record = Record((REPOSITORY, EMPTY))
        record.call(too_large=True)
        assert changes(record.replay(self.PROD)[0]) == ["newly_blocked"]

    def test_ends_of_doubtful_calls_make_windows_doubtful(self):
        errors = {
            "repeat_threshold": ...,
            "repeat_window_ms": ...,
            "error_threshold": 1,
            "window_ms": 999,
        }
        watching = policy(rule("breaker", match={"args": {"has_keys": ["env"]}}, **errors))
        record = Record((REPOSITORY, EMPTY))
        record.call(status="ERROR", on_record=PartialArgs({}, lambda _key: True))
        record.call(args={"env": 1})
        rows, _, _ = record.replay(watching)
        assert changes(rows) == ["same", "undetermined"]


def test_calls_that_are_missing_make_counters_doubtful():
    record = Record((REPOSITORY, EMPTY))
    record.call()
    record.call(seq=4)
    rows, run, _ = record.replay(policy(rule("budget", limit_calls=9)))
    assert changes(rows) == ["same", "undetermined"]
    assert run.unrecorded == 2
    assert changes(record.replay(policy(NO_PUSH))[0]) == ["newly_blocked"] * 2


def test_numbers_that_come_twice_are_no_gap():
    """Other makers of events may count each shim's calls on their own."""
    record = Record((REPOSITORY, EMPTY))
    for seq in (1, 1, 2, 2):
        record.call(seq=seq)
    rows, run, _ = record.replay(policy(rule("budget", limit_calls=3)))
    assert changes(rows) == ["same", "same", "same", "newly_blocked"]
    assert run.unrecorded == 0


class TestMissingLayers:
    """Another layer of the run whose rules nobody wrote down."""

    OTHER = policy(rule("deny", "theirs", match=tools("rm")), policy_id="other")
    OWN = policy(NO_PUSH)

    def record(self) -> Record:
        record = Record((USER, self.OTHER), (REPOSITORY, self.OWN))
        for tool in ("pull", "rm", "push"):
            record.call(tool)
        return record

    def test_a_recorded_pass_passes_the_missing_layer(self):
        rows, _, layering = self.record().replay(self.OWN, known=False)
        assert changes(rows) == ["same", "same", "same"]
        assert layering.missing == {self.OTHER.policy_hash}

    def test_a_call_that_the_missing_layer_might_refuse_is_undetermined(self):
        rows, _, _ = self.record().replay(EMPTY, known=False)
        assert changes(rows) == ["same", "same", "undetermined"]
        assert rows[2].doubt is Doubt.POLICY

    def test_a_stricter_decision_of_the_candidate_shows(self):
        ends = policy(rule("budget", limit_calls=0, on_exceed="TERMINATE_RUN"))
        rows, _, _ = self.record().replay(ends, known=False)
        assert changes(rows) == ["newly_blocked", "changed", "changed"]
        for tool in ("rm", "push"):
            record = Record((USER, self.OTHER), (REPOSITORY, self.OWN))
            record.call(tool)
            assert changes(record.replay(ends, known=False)[0]) == ["changed"]

    def test_doubtful_stays_doubtful(self):
        record = Record((USER, self.OTHER), (REPOSITORY, self.OWN))
        record.call("pull", args={"a": 1}, on_record=hidden("a"))
        asking = policy(rule("deny", "a", match={"args": {"key_equals": {"a": 1}}}))
        assert changes(record.replay(asking, known=False)[0]) == ["undetermined"]
