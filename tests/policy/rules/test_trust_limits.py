"""Sliding windows, resetting budgets, sequences and scopes of agents: what golden cases do not show."""

import pytest
from tests.policy.bundles import bundle, rule
from tests.requirements import requirement

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer
from subluminal.policy import windows
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine

WINDOW = {"capacity": ..., "refill_tokens": ..., "refill_period_ms": ...}


class Run:
    """A run with a clock of its own; each agent has an engine."""

    def __init__(self, *rules):
        self.snapshot = compile_bundle(bundle(*rules))
        self.counters = MemoryCounters()

    def call(self, tool="t", at=0, agent="a", server="s"):
        engine = Engine([(Layer.USER, self.snapshot)], Identity(agent_id=agent))
        asked = Call(server, tool, {}, "ab" * 32)
        found = engine.evaluate(asked, self.counters, wall_ms=at, mono_ms=at)
        self.counters.write(found.updates)
        return found.decision

    def actions(self, *calls):
        return [self.call(*each).action.value for each in calls]


@requirement("trust:agent-scopes")
@pytest.mark.parametrize("kind", ["budget", "dedupe"])
def test_each_agent_of_a_run_has_its_own_counter(kind):
    more = {"limit_calls": 1} if kind == "budget" else {}
    run = Run(rule(kind, scope="agent", **more))
    assert run.actions(("t", 0, "a"), ("t", 0, "b"), ("t", 0, "a")) == ["ALLOW", "ALLOW", "BLOCK"]


@requirement("trust:agent-scopes")
def test_agent_tool_spans_servers():
    for made in (
        rule("budget", scope="agent_tool", limit_calls=1),
        rule("dedupe", scope="agent_tool"),
    ):
        run = Run(made)
        calls = [("t", 0, "a", "s"), ("t", 0, "a", "z"), ("u", 0, "a", "s"), ("t", 0, "b", "s")]
        assert run.actions(*calls) == ["ALLOW", "BLOCK", "ALLOW", "ALLOW"]


@requirement("trust:sliding-window")
def test_a_window_of_more_than_64_calls_counts_in_buckets():
    run = Run(
        rule("rate_limit", **WINDOW, max_calls=100, window_ms=6_300, on_limit="REJECT_WITH_HINT")
    )
    assert {run.call(at=each).action.value for each in range(100)} == {"ALLOW"}
    refused = run.call(at=100)
    assert refused.action.value == "REJECT_WITH_HINT"
    wait_ms = int(refused.hint.retry_advice.split()[2])
    assert 6_200 <= wait_ms <= 6_500
    assert run.call(at=100 + wait_ms).action.value == "ALLOW"


def test_a_window_that_is_not_full_has_room_at_once():
    assert windows.until_room((), 65, 100, 0) == 0
    assert windows.until_room((0, 1), 65, 100, 0) == 0


@requirement("trust:budget-reset")
def test_a_budget_keeps_its_count_over_a_restart_of_the_machine():
    """The clock begins again: nobody can tell how long ago the budget began."""
    run = Run(rule("budget", limit_calls=2, reset_ms=100))
    assert run.actions(("t", 5_000), ("t", 5_001), ("t", 3), ("t", 102)) == [
        "ALLOW",
        "ALLOW",
        "BLOCK",
        "BLOCK",
    ]
    assert run.call(at=103).action.value == "ALLOW"


def test_cost_units_start_anew_too():
    made = rule(
        "budget",
        limit_calls=...,
        limit_cost_units=5,
        cost_units_per_call=3,
        reset_ms=10,
        count="executed",
    )
    assert Run(made).actions(("t", 0), ("t", 1), ("t", 10)) == ["ALLOW", "BLOCK", "ALLOW"]


@requirement("trust:sequence-within")
def test_a_later_first_call_counts_from_its_own_time():
    run = Run(rule("sequence", pattern=["a", "b", "c"], within_ms=10))
    assert run.actions(("a", 0), ("b", 9), ("a", 10), ("b", 11), ("c", 20)) == [
        *["ALLOW"] * 4,
        "BLOCK",
    ]
    assert run.call("c", at=21).action.value == "ALLOW"


def test_a_sequence_from_before_a_restart_of_the_machine():
    run = Run(
        rule("sequence", pattern=["a", "b"], within_ms=10),
        rule("sequence", "always", pattern=["a", "c"]),
    )
    assert run.call("a", at=5_000).action.value == "ALLOW"
    assert run.call("b", at=3).action.value == "ALLOW"
    assert run.call("c", at=3).rule_id == "always"


def test_a_pattern_of_64_calls_fits_into_its_cell():
    run = Run(rule("sequence", pattern=["t"] * 64))
    assert run.actions(*[("t", each) for each in range(64)]) == [*["ALLOW"] * 63, "BLOCK"]
    assert run.call("other").action.value == "ALLOW"
