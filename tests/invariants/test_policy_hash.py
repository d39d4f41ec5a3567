"""policy_hash names what a policy means: not its words, its order of keys or its comments (2.6)."""

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from tests.differential import generated
from tests.differential.driving import Naively, answers
from tests.differential.generated import Chooser, drawn
from tests.policy.desk import find_desk

from subluminal.contracts.bundle import Bundle
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.loading import parse_bundle

WORDS = {"description": "why", "owner": "me", "created_at": "2026-11-12T00:00:00Z"}


def hash_of(bundle: dict[str, Any]) -> str:
    return compile_bundle(msgspec.convert(bundle, Bundle)).policy_hash


def shuffled(value: Any) -> Any:
    """The same with every object's keys in the opposite order."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [shuffled(item) for item in value]
    return value


@given(drawn(generated.bundle))
def test_words_and_the_order_of_keys_do_not_matter(bundle):
    rules = [rule | {"description": "because"} for rule in bundle["rules"]]

    assert hash_of(shuffled(bundle | WORDS | {"rules": rules})) == hash_of(bundle)


@given(drawn(generated.bundle))
def test_comments_and_layout_do_not_matter(bundle):
    text = "# a comment\n" + json.dumps(bundle, indent=2, ensure_ascii=False) + "\n# another\n"
    loaded = parse_bundle(text.encode(), "p.yaml", find_desk)

    assert compile_bundle(loaded.bundle).policy_hash == hash_of(bundle)


@given(drawn(generated.bundle))
def test_a_disabled_rule_does_not_matter(bundle):
    off = {"rule_id": "off", "kind": "deny", "enabled": False, "match": {}, "severity": "info"}
    off["effect"] = {"action": "BLOCK", "reason_code": "NO", "message": "m"}

    assert hash_of(bundle | {"rules": [off, *bundle["rules"]]}) == hash_of(bundle)


def two_bundles(choose: Chooser) -> tuple[dict[str, Any], dict[str, Any]]:
    """A bundle, and the same with one value changed."""
    bundle = generated.bundle(choose)
    other = copy.deepcopy(bundle)
    if not bundle["rules"] or choose.rarely():
        other["mode"] = choose.one(generated.MODES)
        return bundle, other
    rule = choose.one(other["rules"])
    match choose.below(3):
        case 0:
            rule["match"] = generated.match(choose)
        case 1:
            rule["effect"] = generated.EFFECTS[rule["kind"]](choose)
        case 2:
            other["rules"].remove(rule)
    return bundle, other


@settings(max_examples=200)
@given(drawn(two_bundles), drawn(generated.identity), drawn(generated.calls))
def test_policies_of_one_hash_decide_alike(pair, identity, calls):
    """So a change that can be noticed changes the hash. Judged by the naive evaluator."""
    one, other = pair
    if hash_of(one) == hash_of(other):
        first = list(answers(Naively([("user", one)], identity), calls))
        assert list(answers(Naively([("user", other)], identity), calls)) == first


BUDGET = {"scope": "run", "limit_calls": 5, "on_exceed": "BLOCK"}
BASE = {
    "policy_id": "p",
    "version": "1",
    "mode": "guardrails",
    "defaults": {"decision_on_error": "BLOCK"},
    "selectors": {},
    "rules": [
        {
            "rule_id": "b",
            "kind": "budget",
            "enabled": True,
            "match": {"tool_name": {"glob": ["push"]}},
            "effect": {"budget": BUDGET},
            "severity": "warn",
        }
    ],
}


def with_rule(**changes: Any) -> dict[str, Any]:
    return BASE | {"rules": [BASE["rules"][0] | changes]}


def with_budget(**changes: Any) -> dict[str, Any]:
    return with_rule(effect={"budget": BUDGET | changes})


@pytest.mark.parametrize(
    "changed",
    [
        BASE | {"policy_id": "q"},
        BASE | {"version": "2"},
        BASE | {"mode": "observe"},
        BASE | {"defaults": {"decision_on_error": "ALLOW"}},
        BASE | {"defaults": {"decision_on_error": "BLOCK", "fail_open_read_tools": True}},
        BASE | {"selectors": {"env": ["ci"]}},
        BASE | {"selectors": {"workload": {"labels": {"a": "1"}}}},
        BASE | {"rules": []},
        with_rule(rule_id="c"),
        with_rule(enabled=False),
        with_rule(severity="info"),
        with_rule(match={}),
        with_rule(match={"tool_name": {"glob": ["push*"]}}),
        with_rule(match={"tool_name": {"regex": ["push"]}}),
        with_rule(match={"server_name": {"glob": ["push"]}}),
        with_rule(match={"tool_name": {"glob": ["push"]}, "risk_class": ["x"]}),
        with_rule(match={"tool_name": {"glob": ["push"]}, "args": {"has_keys": ["a"]}}),
        with_rule(match={"tool_name": {"glob": ["push"]}, "time": {"weekdays": ["mon"]}}),
        with_budget(scope="tool"),
        with_budget(limit_calls=6),
        with_budget(limit_cost_units=5),
        with_budget(cost_units_per_call=2),
        with_budget(on_exceed="TERMINATE_RUN"),
        with_budget(count="executed"),
        with_budget(hint_text="what the agent is told is part of a decision"),
    ],
)
def test_whatever_changes_a_decision_changes_the_hash(changed):
    assert hash_of(changed) != hash_of(BASE)


@pytest.mark.parametrize(
    "same",
    [
        BASE | {"defaults": {"decision_on_error": "BLOCK", "fail_open_read_tools": False}},
        BASE | {"selectors": {"env": [], "agent_id": []}},
        with_rule(match={"tool_name": {"glob": ["push", "push"], "regex": []}}),
        with_budget(cost_units_per_call=1, count="attempts"),
    ],
)
def test_a_default_that_is_written_out_does_not_change_it(same):
    assert hash_of(same) == hash_of(BASE)
