"""Suggestions that cannot help, and that evaluation then never offers."""

import pytest
from tests.policy.bundles import bundle, rule, tools

from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.lint.suggestions import vain_suggestions

AGAIN = "cannot help: the corrected arguments would match this rule again"


def told(*rules) -> list[str]:
    return [each.message for each in vain_suggestions(bundle(*rules).rules)]


@pytest.mark.parametrize(
    ("args", "operation", "helps"),
    [
        ({"key_equals": {"k": 1}}, {"set": 2}, True),
        ({"key_equals": {"k": 1}}, {"set": 1.0}, False),
        ({"key_in": {"k": [1, 2]}}, {"set": 2}, False),
        ({"key_in": {"k": [1, 2]}}, {"set": 3}, True),
        ({"numeric_range": {"k": {"min": 5}}}, {"set": 4}, True),
        ({"numeric_range": {"k": {"min": 5}}}, {"set": 6}, False),
        ({"has_keys": ["k"]}, {"set": 1}, False),
        ({"has_keys": ["k"]}, {"remove": True}, True),
        ({"has_keys": ["j"]}, {"remove": True}, False),
        ({"key_equals": {"k": 1}}, {"one_of": [2, 1]}, True),
        ({"key_equals": {"k": 1}}, {"one_of": [1, 2]}, False),
        ({"numeric_range": {"k": {"min": 5}}}, {"clamp_max": 4}, True),
        ({"numeric_range": {"k": {"min": 5}}}, {"clamp_max": 5}, False),
        ({"numeric_range": {"k": {"max": 5}}}, {"clamp_min": 6}, True),
        ({"numeric_range": {"k": {"max": 5}}}, {"clamp_max": 1}, False),
        ({"numeric_range": {"j": {"max": 5}}}, {"clamp_max": 1}, False),
        ({"key_equals": {"k": 9}}, {"clamp_max": 4}, True),
        ({"key_equals": {"k": 1}}, {"clamp_min": 4}, True),
        ({"key_equals": {"k": 3}}, {"clamp_min": 1, "clamp_max": 4}, False),
        ({"key_equals": {"k": "a"}}, {"clamp_max": 4}, False),
        ({}, {"set": 2}, False),
    ],
)
def test_a_suggestion_that_its_own_rule_would_refuse_is_warned_of(args, operation, helps):
    each = rule("deny", match={"args": args}, suggest={"k": operation})
    assert told(each) == ([] if helps else [AGAIN])


@pytest.mark.parametrize("value", [0, 1, 2, 3, 5, 9, "a", None])
@pytest.mark.parametrize(
    ("args", "operation"),
    [
        ({"key_in": {"k": [1, 2]}}, {"set": 2}),
        ({"numeric_range": {"k": {"min": 5}}}, {"clamp_max": 5}),
        ({"key_equals": {"k": 3}}, {"clamp_min": 1, "clamp_max": 4}),
        ({"key_equals": {"k": 1}}, {"one_of": [1, 2]}),
        ({"has_keys": ["k"]}, {"set": 1}),
    ],
)
def test_where_lint_says_so_evaluation_offers_nothing(args, operation, value):
    snapshot = compile_bundle(bundle(rule("deny", match={"args": args}, suggest={"k": operation})))
    engine = Engine([(Layer.USER, snapshot)], Identity())
    call = Call("s", "t", {"k": value}, "0" * 64)
    hint = engine.evaluate(call, MemoryCounters(), wall_ms=0, mono_ms=0).decision.hint
    assert hint is None or hint.suggested_args is None


FIXABLE = rule(
    "deny", "fixable", match={**tools("x"), "args": {"has_keys": ["k"]}}, suggest={"k": {"remove": True}}
)  # fmt: skip


def test_a_deny_that_refuses_the_corrected_call_too_is_named():
    assert told(FIXABLE, rule("deny", "all")) == [
        "cannot help: rule `all` would deny the corrected call"
    ]
    assert told(FIXABLE, rule("allow"), rule("deny", "all")) == []
    assert told(FIXABLE, rule("budget"), rule("deny", "all", enabled=False)) == []
    assert told(FIXABLE, rule("deny", "other", match=tools("y"))) == []


def test_only_enabled_denies_with_a_suggestion_are_looked_at():
    off = rule("deny", suggest={"k": {"set": 1}}, enabled=False)
    assert told(rule("allow"), rule("deny", "plain"), off) == []
