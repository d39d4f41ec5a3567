"""Impossible values: in the bundle, in a match (Pack 2.4), in an effect (Pack 2.5)."""

import pytest
from tests.policy.bundles import EFFECTS, bundle, rule
from tests.policy.desk import find_desk

from subluminal.contracts.limits import MAX_AMOUNT
from subluminal.policy.checking import effect_misfits, match_misfits, semantic_misfits


def told(*rules, **changes) -> list[tuple[tuple, str]]:
    return [(found.path, found.message) for found in semantic_misfits(bundle(*rules, **changes))]


def test_a_sound_bundle_has_no_misfits():
    assert told(rule("deny"), rule("allow"), rule("budget"), rule("tag")) == []


def test_names_must_not_be_blank():
    assert told(policy_id=" ", version="") == [
        (("policy_id",), "must not be empty"),
        (("version",), "must not be empty"),
    ]
    assert told(rule("deny", " ")) == [(("rules", 0, "rule_id"), "must not be empty")]


def test_no_policy_is_called_as_a_run_without_one():
    assert told(policy_id="none") == [(("policy_id",), "`none` stands for runs without a policy")]


def test_a_rule_id_is_used_once():
    found = semantic_misfits(bundle(rule("deny", "a"), rule("tag", "b"), rule("allow", "a")))
    assert [(each.path, each.message, each.hint) for each in found] == [
        (
            ("rules", 2, "rule_id"),
            "duplicate rule_id",
            "rule 1 has the same; give each rule an id of its own",
        )
    ]


def test_misfits_of_a_rule_are_placed_under_it():
    assert told(rule("deny"), rule("dedupe", window_ms=0)) == [
        (("rules", 1, "effect", "dedupe", "window_ms"), "must be at least 1, got 0")
    ]


def told_of_match(**match) -> list[str]:
    (each,) = bundle(rule("deny", match=match)).rules
    return [
        f"{'.'.join(map(str, found.path))}: {found.message}" for found in match_misfits(each.match)
    ]


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"tool_name": {"glob": [""]}}, "match.tool_name.glob.0: invalid glob: an empty glob matches no name"),
        ({"server_name": {"glob": ["[a"]}}, "match.server_name.glob.0: invalid glob `[a`: `[` without a closing `]`"),
        ({"tool_name": {"regex": ["(?!a)"]}}, "match.tool_name.regex.0: invalid regex `(?!a)`: a lookahead `(?!` cannot be matched in linear time"),
        ({"tool_name": {"regex": ["ok", "(a"]}}, "match.tool_name.regex.1: invalid regex `(a`: missing ): (a"),
        ({"risk_class": ["a", ""]}, "match.risk_class.1: must not be empty"),
        ({"args": {"key_in": {"k": []}}}, "match.args.key_in.k: an empty list matches no value"),
        ({"args": {"key_equals": {"k": float("nan")}}}, "match.args.key_equals.k: must be a finite number"),
        ({"args": {"key_in": {"k": [1, float("inf")]}}}, "match.args.key_in.k.1: must be a finite number"),
        ({"args": {"numeric_range": {"k": {}}}}, "match.args.numeric_range.k: needs `min` or `max`"),
        ({"args": {"numeric_range": {"k": {"min": 2, "max": 1}}}}, "match.args.numeric_range.k: `min` 2 is greater than `max` 1"),
        ({"args": {"numeric_range": {"k": {"min": float("-inf")}}}}, "match.args.numeric_range.k.min: must be a finite number"),
        ({"time": {"utc_hours": [[1]]}}, "match.time.utc_hours.0: expected a pair of hours, got 1"),
        ({"time": {"utc_hours": [[9, 17], [24, 3]]}}, "match.time.utc_hours.1: an hour must be between 0 and 24"),
        ({"time": {"utc_hours": [[0, 25]]}}, "match.time.utc_hours.0: an hour must be between 0 and 24"),
        ({"time": {"utc_hours": [[-1, 4]]}}, "match.time.utc_hours.0: an hour must be between 0 and 24"),
        ({"time": {"utc_hours": [[4, 4]]}}, "match.time.utc_hours.0: the time from 4 to 4 is empty"),
    ],
)  # fmt: skip
def test_an_impossible_match_is_refused(match, message):
    assert told_of_match(**match) == [message]


@pytest.mark.parametrize(
    "match",
    [
        {},
        {"tool_name": {"glob": ["a*", "[!x]?"], "regex": ["^a.*b$"]}, "risk_class": ["x"]},
        {"args": {"numeric_range": {"k": {"min": 1, "max": 1}}, "key_in": {"k": [None]}}},
        {"time": {"utc_hours": [[0, 24], [22, 6]], "weekdays": ["mon"]}},
    ],
)
def test_a_possible_match_is_accepted(match):
    assert told_of_match(**match) == []


def told_of_effect(kind: str, **changes) -> list[str]:
    (each,) = bundle(rule(kind, **changes)).rules
    found = effect_misfits(each, find_desk)
    return [f"{'.'.join(map(str, misfit.path))}: {misfit.message}" for misfit in found]


@pytest.mark.parametrize("kind", [kind for kind in EFFECTS if kind != "pin"])
def test_a_sound_effect_has_no_misfits(kind):
    assert told_of_effect(kind) == []


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("allow", {"action": "BLOCK"}, "effect.action: an allow rule cannot BLOCK"),
        ("allow", {"action": "REJECT_WITH_HINT"}, "effect.action: an allow rule cannot REJECT_WITH_HINT"),
        ("deny", {"action": "ALLOW"}, "effect.action: a deny rule cannot ALLOW"),
        ("deny", {"reason_code": " "}, "effect.reason_code: must not be empty"),
        ("allow", {"suggest": {"a": {"set": 1}}}, "effect.suggest: only a deny rule can suggest other arguments"),
        ("deny", {"approver_role": "x"}, "effect.approver_role: has no effect without `require`"),
        ("deny", {"expires_ms": 5}, "effect.expires_ms: has no effect without `require`"),
        ("deny", {"require": "approval", "expires_ms": 0}, "effect.expires_ms: must be at least 1, got 0"),
        ("deny", {"suggest": {"a": {}}}, "effect.suggest.a: expected one operation, got none"),
        ("deny", {"suggest": {"a": {"remove": False}}}, "effect.suggest.a: expected one operation, got none"),
        ("deny", {"suggest": {"a": {"set": None, "remove": True}}}, "effect.suggest.a: expected one operation, got `set` and `remove`"),
        ("deny", {"suggest": {"a": {"clamp_min": 3, "clamp_max": 2}}}, "effect.suggest.a: `clamp_min` 3 is greater than `clamp_max` 2"),
        ("deny", {"suggest": {"a": {"set": [float("inf")]}}}, "effect.suggest.a.set.0: must be a finite number"),
        ("deny", {"suggest": {"a": {"one_of": [{"b": float("nan")}]}}}, "effect.suggest.a.one_of.0.b: must be a finite number"),
        ("budget", {"limit_calls": ...}, "effect.budget: needs `limit_calls` or `limit_cost_units`"),
        ("budget", {"limit_calls": -1}, "effect.budget.limit_calls: must be at least 0, got -1"),
        ("budget", {"limit_cost_units": -1}, "effect.budget.limit_cost_units: must be at least 0, got -1"),
        ("budget", {"cost_units_per_call": 0}, "effect.budget.cost_units_per_call: must be at least 1, got 0"),
        ("budget", {"limit_calls": MAX_AMOUNT + 1}, "effect.budget.limit_calls: must be at most 1000000000000"),
        ("rate_limit", {"capacity": 0}, "effect.rate_limit.capacity: must be at least 1, got 0"),
        ("rate_limit", {"refill_tokens": 0}, "effect.rate_limit.refill_tokens: must be at least 1, got 0"),
        ("rate_limit", {"refill_period_ms": 0}, "effect.rate_limit.refill_period_ms: must be at least 1, got 0"),
        ("rate_limit", {"cost_tokens_per_call": 0}, "effect.rate_limit.cost_tokens_per_call: must be at least 1, got 0"),
        ("rate_limit", {"backoff_ms": ...}, "effect.rate_limit: missing field `backoff_ms`"),
        ("rate_limit", {"backoff_ms": 0}, "effect.rate_limit.backoff_ms: must be at least 1, got 0"),
        ("breaker", {"repeat_window_ms": ...}, "effect.breaker.repeat_threshold: needs `repeat_window_ms` as well"),
        ("breaker", {"repeat_threshold": ...}, "effect.breaker.repeat_window_ms: needs `repeat_threshold` as well"),
        ("breaker", {"repeat_threshold": ..., "repeat_window_ms": ...}, "effect.breaker: would never trip"),
        ("breaker", {"error_threshold": 3}, "effect.breaker.error_threshold: needs `window_ms` as well"),
        ("breaker", {"window_ms": 3}, "effect.breaker.window_ms: needs `error_threshold` as well"),
        ("breaker", {"latency_threshold_ms": 3, "window_ms": 4}, "effect.breaker.latency_threshold_ms: needs `latency_count` as well"),
        ("breaker", {"latency_count": 3}, "effect.breaker.latency_count: needs `latency_threshold_ms` and `window_ms` as well"),
        ("breaker", {"repeat_threshold": 0}, "effect.breaker.repeat_threshold: must be at least 1, got 0"),
        ("dedupe", {"window_ms": 0}, "effect.dedupe.window_ms: must be at least 1, got 0"),
        ("dedupe", {"key": "custom"}, "effect.dedupe.key: this version compares calls by `args_hash` only"),
        ("dedupe", {"on_duplicate": "REPLAY"}, "effect.dedupe.on_duplicate: this version cannot replay recorded answers"),
        ("tag", {"add_risk_class": []}, "effect.tag.add_risk_class: an empty list adds no class"),
        ("tag", {"add_risk_class": ["a", " "]}, "effect.tag.add_risk_class.1: must not be empty"),
        ("pin", {}, "kind: unknown rule kind `pin`: this version cannot watch tool definitions"),
    ],
)  # fmt: skip
def test_an_impossible_value_is_refused(kind, changes, message):
    assert told_of_effect(kind, **changes) == [message]


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("deny", {"action": "REJECT_WITH_HINT"}),
        ("deny", {"require": "approval", "approver_role": "x", "expires_ms": 1}),
        ("allow", {"require": "human"}),
        ("deny", {"suggest": {"a": {"set": None}, "b": {"remove": True}, "c": {"clamp_max": 1}, "d": {"one_of": [None]}}}),
        ("budget", {"limit_calls": 0}),
        ("budget", {"limit_calls": ..., "limit_cost_units": 0}),
        ("rate_limit", {"on_limit": "BLOCK", "backoff_ms": ...}),
        ("breaker", {"error_threshold": 1, "window_ms": 1}),
        ("breaker", {"repeat_threshold": ..., "repeat_window_ms": ..., "latency_threshold_ms": 1, "latency_count": 1, "window_ms": 1}),
    ],
)  # fmt: skip
def test_a_valid_edge_value_is_accepted(kind, changes):
    assert told_of_effect(kind, **changes) == []
