"""A refused call becomes the narrowest rule that lets it pass."""

from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.bundles import bundle, rule, tools
from tests.policy.text.odd_texts import json_texts, yaml_texts
from tests.policy.text.test_inserting import only_added

from subluminal.canonical import args_hash
from subluminal.contracts.bundle import Bundle, Match
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Action, Layer
from subluminal.errors import SubluminalError
from subluminal.policy.casefile import parse_cases
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.evaluation import Call, Engine
from subluminal.policy.loading import parse_bundle
from subluminal.policy.predicates import same_value
from subluminal.policy.promoting import (
    RefusedCall,
    also_passed,
    decide,
    exception_rule,
    free_rule_id,
    refusing_rule,
    watched_keys,
)
from subluminal.policy.text.inserting import insert_rule

ARGS = {"path": "/x", "head": 500, "deep": {"a": [1]}, "none": None, "flag": True}
CALL = RefusedCall("fs", "read", ARGS, Identity(), 0)
TOLD = {"description": "from hint-1", "message": "a person allowed it"}


def exception(call=CALL, keys=(), rule_id="x"):
    return exception_rule(call, list(keys), rule_id=rule_id, **TOLD)


@pytest.mark.parametrize(
    ("keys", "args"),
    [
        ([], None),
        (["head"], {"key_equals": {"head": 500}}),
        (["none", "deep"], {"key_in": {"none": [None], "deep": [{"a": [1]}]}}),
        (["flag", "none"], {"key_equals": {"flag": True}, "key_in": {"none": [None]}}),
    ],
)
def test_an_exception_names_the_tool_and_the_wanted_arguments(keys, args):
    match = exception(keys=keys)["match"]
    assert match["server_name"] == {"glob": ["fs"]}
    assert match["tool_name"] == {"glob": ["read"]}
    assert match.get("args") == args


def test_an_exception_is_for_this_name_and_not_for_what_it_would_match_as_a_pattern():
    odd = RefusedCall("a*", "[b]?", {}, Identity(), 0)
    policy = bundle(exception(odd), rule("deny"))
    snapshot = compile_bundle(policy)
    assert decide(snapshot, odd).action is Action.ALLOW
    assert decide(snapshot, odd._replace(server_name="ab")).action is Action.BLOCK
    assert decide(snapshot, odd._replace(tool_name="bc")).action is Action.BLOCK


def test_numbers_are_written_as_rules_compare_them():
    fine = {"n": Decimal("0.1000000000000000000001"), "l": [Decimal("1e-400"), {"d": 1}]}
    call = CALL._replace(args=fine)
    made = exception(call, ["n", "l"])
    assert made["match"]["args"] == {"key_equals": {"n": 0.1}, "key_in": {"l": [[0.0, {"d": 1}]]}}
    assert decide(compile_bundle(bundle(made, rule("deny"))), call).action is Action.ALLOW


def test_arguments_that_are_not_on_record_are_taken_for_none():
    policy = compile_bundle(bundle(rule("deny", match={"args": {"has_keys": ["head"]}})))
    assert decide(policy, CALL).action is Action.BLOCK
    assert decide(policy, CALL._replace(args=None)).action is Action.ALLOW


def test_the_rule_that_refused_is_found():
    policy = bundle(rule("tag"), rule("deny", "no"), rule("allow", "ask", require="approval"))
    assert refusing_rule(policy, "no", "NO")[0] == 1
    assert refusing_rule(policy, "ask", "APPROVAL_REQUIRED")[0] == 2


@pytest.mark.parametrize(
    ("made", "rule_id", "message", "hint"),
    [
        (rule("deny"), "other", "policy `p` has no rule `other`", "name the file"),
        (rule("deny"), None, "the hint does not come from a rule of policy `p`", "name the file"),
        (rule("deny", enabled=False), "deny", "rule `deny` is disabled", "let the agent repeat"),
        (rule("tag"), "tag", "is of kind `tag`: it refuses no calls", "name a rule that refuses"),
        (rule("pin"), "pin", "is of kind `pin`: it refuses no calls", "review the new definition"),
        (rule("budget"), "budget", "is of another kind than when it refused", "let the agent try"),
    ],
)
def test_a_rule_that_did_not_refuse_is_not_promoted(made, rule_id, message, hint):
    with pytest.raises(SubluminalError) as refused:
        refusing_rule(bundle(made), rule_id, "NO")
    assert message in str(refused.value)
    assert (refused.value.hint or "").startswith(hint or "")


def test_a_rule_is_promoted_only_as_the_kind_that_refused():
    limits = {
        "budget": "BUDGET_EXCEEDED",
        "rate_limit": "RATE_LIMITED",
        "breaker": "BREAKER_TRIPPED",
        "dedupe": "DEDUPE_DUPLICATE",
    }
    for kind, reason_code in limits.items():
        assert refusing_rule(bundle(rule(kind)), kind, reason_code)[0] == 0
        with pytest.raises(SubluminalError, match="is of another kind"):
            refusing_rule(bundle(rule("deny", kind)), kind, reason_code)


def test_the_arguments_that_a_rule_looks_at():
    asks = {"has_keys": ["a"], "key_equals": {"b": 1}, "key_in": {"c": [1]}, "numeric_range": {"d": {"min": 1}, "a": {"max": 2}}}  # fmt: skip
    policy = bundle(
        rule("deny", "all", match={"args": asks}, suggest={"e": {"remove": True}, "b": {"set": 2}}),
        rule("deny", "none"),
    )
    assert watched_keys(policy.rules[0]) == ["a", "b", "c", "d", "e"]
    assert watched_keys(policy.rules[1]) == []


def test_an_exception_has_a_name_of_its_own():
    assert free_rule_id(bundle(rule("deny", "no")), "no") == "no-exception"
    policy = bundle(
        rule("deny", "no"), rule("allow", "no-exception"), rule("tag", "no-exception-2")
    )
    assert free_rule_id(policy, "no") == "no-exception-3"


def test_later_rules_that_an_exception_stands_before_are_named():
    policy = bundle(
        rule("deny", "refused"),
        rule("deny", "other-tool", match=tools("write")),
        rule("deny", "off", enabled=False),
        rule("allow", "plain"),
        rule("allow", "asks", require="approval"),
        rule("budget"),
        rule("deny", "same-tool", match=tools("re*")),
        rule("deny", "far", match={"args": {"numeric_range": {"head": {"max": 9}}}}),
        rule("deny", "near", match={"args": {"numeric_range": {"head": {"min": 9}}}}),
        rule("deny", "elsewhere", match={"args": {"key_in": {"path": ["/y"]}}}),
        rule("deny", "here", match={"args": {"key_equals": {"path": "/x"}}}),
        rule("deny", "others", match={"args": {"has_keys": ["zzz"]}}),
    )
    match = msgspec.convert(exception(keys=["path", "head", "none"])["match"], Match)
    assert also_passed(policy.rules, 0, match) == ["asks", "same-tool", "near", "here", "others"]
    assert also_passed(policy.rules, 9, msgspec.convert(exception()["match"], Match)) == ["here", "others"]  # fmt: skip


GOLDEN = [
    case
    for path in sorted((Path(__file__).parents[1] / "cases" / "policy").glob("*.yaml"))
    if "re2" not in path.name
    for case in parse_cases(path.read_bytes(), path.name)
    if not case.case.layers and all(call.args is not None for call in case.case.calls)
]


def alone(policy: Bundle, case, call):
    """What a policy says of a call that is the first of its run."""
    engine = Engine([(Layer.REPOSITORY, compile_bundle(policy))], case.identity)
    asked = Call(call.server, call.tool, call.args, args_hash(call.args))
    wall_ms = case.start_ms + call.at_ms
    return engine.evaluate(asked, MemoryCounters(), wall_ms=wall_ms, mono_ms=0).decision


def promotable(case, policy: Bundle):
    """The calls of a case that an access rule refuses."""
    found = []
    for call in case.case.calls:
        if not (call.server and call.tool):  # no glob matches nothing
            continue
        decision = alone(policy, case, call)
        kinds = {each.rule_id: type(each).__name__ for each in policy.rules}
        if decision.action is not Action.ALLOW and kinds.get(decision.rule_id) in ("DenyRule", "AllowRule"):  # fmt: skip
            found.append((call, decision.rule_id))
    return found


def refused_calls():
    for case in GOLDEN:
        (policy,) = [loaded.bundle for _, loaded in case.policies]
        for call, rule_id in promotable(case, policy):
            yield case, policy, call, rule_id


REFUSED = list(refused_calls())


@given(st.data(), st.sampled_from(REFUSED))
@settings(max_examples=300, deadline=None)
def test_a_promotion_lets_that_call_pass_and_changes_nothing_else(data, refused):
    """However the policy is written: its other bytes stay, and so do its other decisions."""
    case, policy, call, rule_id = refused
    before = data.draw(
        data.draw(st.sampled_from([yaml_texts, json_texts]))(msgspec.to_builtins(policy))
    )
    old = parse_bundle(before, "f").bundle
    index, _ = refusing_rule(old, rule_id, None)
    wall_ms = case.start_ms + call.at_ms
    given_call = RefusedCall(call.server, call.tool, call.args, case.identity, wall_ms)
    name = free_rule_id(old, rule_id)
    after = insert_rule(before, index, exception(given_call, list(call.args), name))
    assert only_added(before, after)
    new = parse_bundle(after, "f").bundle
    assert alone(new, case, call).rule_id != rule_id
    for other in case.case.calls:
        if not is_like(other, call):
            assert alone(new, case, other) == alone(old, case, other)


def is_like(other, call) -> bool:
    """Whether a call has all the arguments of another, and is of the same tool."""
    return (other.server, other.tool) == (call.server, call.tool) and all(
        key in other.args and same_value(other.args[key], value) for key, value in call.args.items()
    )
