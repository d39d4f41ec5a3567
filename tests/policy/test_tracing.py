"""Steps say for every rule whether it matched, which clause failed, and what was counted."""

import pytest
from tests.policy.bundles import bundle, rule, tools

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine

SERVER_X = {"server_name": {"glob": ["x"]}}
HAS_X = {"args": {"has_keys": ["x"]}}
AT_NOON = {"time": {"utc_hours": [[12, 13]]}}


def steps_of(*rules, args=None, granted=(), counters=None, **changes):
    it = Engine([(Layer.USER, compile_bundle(bundle(*rules, **changes)))], Identity())
    steps = []
    call = Call("git", "push", args, "ab" * 32, frozenset(granted))
    found = it.evaluate(call, counters or MemoryCounters(), wall_ms=0, mono_ms=0, steps=steps)
    return steps, found


@pytest.mark.parametrize(
    ("match", "clause"),
    [
        (SERVER_X, "server_name"),
        (tools("x"), "tool_name"),
        (SERVER_X | tools("x"), "server_name"),
        ({"risk_class": ["x"]}, "risk_class"),
        (HAS_X, "args"),
        (AT_NOON, "time"),
        (HAS_X | AT_NOON, "time"),
    ],
)
@pytest.mark.parametrize("kind", ["deny", "budget", "tag"])
def test_the_clause_that_failed_is_named(kind, match, clause):
    ((step,), found) = steps_of(rule(kind, match=match), args={})

    assert (step.layer, step.rule_id, step.kind) == ("user", kind, kind)
    assert (step.result, step.clause, step.action) == ("no match", clause, None)
    assert found.forwarded


def test_a_risk_class_that_a_tag_might_have_added():
    maybe = rule("tag", add_risk_class=["big"], match=HAS_X)
    steps, _ = steps_of(maybe, rule("deny", match={"risk_class": ["big"]}), args={})

    assert [(step.result, step.clause) for step in steps] == [
        ("no match", "args"),
        ("no match", "risk_class"),
    ]


def test_every_rule_has_a_step_in_order():
    rules = [
        rule("tag"),
        rule("allow"),
        rule("deny"),
        rule("budget"),
        rule("deny", "x", match=HAS_X),
    ]
    steps, _ = steps_of(*rules, args={})

    assert [(step.rule_id, step.result, step.action) for step in steps] == [
        ("tag", "matched", None),
        ("allow", "matched", "ALLOW"),
        ("deny", "passed over", None),
        ("budget", "matched", None),
        ("x", "passed over", None),
    ]


def test_counters_before_and_after_are_shown():
    counters = MemoryCounters()
    for _ in range(2):
        steps, found = steps_of(rule("budget", limit_calls=9), args={}, counters=counters)
        counters.write(found.updates)

    assert (steps[0].before, steps[0].after) == ((1, 1), (2, 2))


def test_a_rule_that_could_not_be_evaluated_says_so():
    steps, _ = steps_of(rule("deny", match=HAS_X), rule("dedupe"), args=None)

    assert [(step.result, step.action) for step in steps] == [("error", "BLOCK")] * 2
    assert "too large" in steps[0].note


@pytest.mark.parametrize(
    ("rules", "decided"),
    [
        ([], None),
        ([rule("deny"), rule("budget", limit_calls=0, on_exceed="TERMINATE_RUN")], "budget"),
        ([rule("budget", limit_calls=0), rule("deny")], "budget"),
        ([rule("allow")], "allow"),
    ],
)
def test_what_is_explained_is_what_is_decided(rules, decided):
    _, found = steps_of(*rules, args={})

    assert found.decision.rule_id == decided


def test_a_name_that_is_too_long_leaves_no_steps():
    it = Engine([(Layer.USER, compile_bundle(bundle(rule("deny"))))], Identity())
    steps = []
    call = Call("s", "n" * 2_000, {}, "00" * 32)
    found = it.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0, steps=steps)

    assert (steps, found.forwarded) == ([], False)
