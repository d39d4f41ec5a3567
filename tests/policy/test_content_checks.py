"""Impossible texts, sequences, windows, numbers and ends of policies."""

import pytest
from tests.policy.bundles import bundle, rule

from subluminal.policy.checking import semantic_misfits
from subluminal.policy.costs import rule_costs, worst_call


def told(*rules, **changes):
    return [
        (found.path[2:], found.message) for found in semantic_misfits(bundle(*rules, **changes))
    ]


@pytest.mark.parametrize(
    ("match", "path", "message"),
    [
        ({"text": {}}, ("text",), "says nothing about texts"),
        ({"text": {"any_of": [""]}}, ("text", "any_of", 0), "an empty text is part of every value"),
        ({"text": {"none_of": ["x" * 1_025]}}, ("text", "none_of", 0), "longer than 1024 characters"),
        ({"text": {"any_of": ["x"] * 257}}, ("text", "any_of"), "has 257 texts; the most is 256"),
        ({"text": {"regex": ""}}, ("text", "regex"), "invalid regex: an empty regex is found everywhere"),
        ({"text": {"regex": "(?=x)"}}, ("text", "regex"), "invalid regex `(?=x)`: a lookahead `(?=` cannot be matched in linear time"),
        ({"args": {"numeric_range": {"n": {"gt": 1, "lt": 1}}}}, ("args", "numeric_range", "n"), "no number is in it: `gt` 1, `lt` 1"),
        ({"args": {"numeric_range": {"n": {"min": 2, "lt": 2}}}}, ("args", "numeric_range", "n"), "no number is in it: `min` 2, `lt` 2"),
        ({"args": {"numeric_range": {"n": {"gt": 2, "min": 1, "max": 1}}}}, ("args", "numeric_range", "n"), "no number is in it: `gt` 2, `max` 1"),
    ],
)  # fmt: skip
def test_a_match_that_nothing_can_mean(match, path, message):
    assert told(rule("deny", match=match)) == [(("match", *path), message)]


def test_numbers_of_a_range_are_finite():
    for name in ("gt", "lt"):
        match = {"args": {"numeric_range": {"n": {name: float("inf")}}}}
        assert told(rule("deny", match=match)) == [
            (("match", "args", "numeric_range", "n", name), "must be a finite number")
        ]
    match = {"args": {"key_not_equals": {"n": float("nan")}}}
    assert told(rule("deny", match=match))[0][1] == "must be a finite number"
    assert told(rule("deny", constraints={"a": [float("inf")]}))[0][0] == (
        "effect",
        "constraints",
        "a",
        0,
    )
    assert told(rule("deny", match={"args": {"numeric_range": {"n": {"gt": 1, "lt": 2}}}})) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pattern": ["a"]}, "needs at least 2 calls, got 1"),
        ({"pattern": ["a"] * 65}, "has 65 calls; the most is 64"),
        ({"pattern": ["a", ""]}, "invalid glob: an empty glob matches no name"),
        ({"pattern": ["a", "[b"]}, "invalid glob `[b`: `[` without a closing `]`"),
        ({"within_ms": 0}, "must be at least 1, got 0"),
    ],
)
def test_a_sequence_that_nothing_can_mean(changes, message):
    assert [each[1] for each in told(rule("sequence", **changes))] == [message]


WINDOW = {
    "capacity": ...,
    "refill_tokens": ...,
    "refill_period_ms": ...,
    "max_calls": 2,
    "window_ms": 9,
}


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        (WINDOW, []),
        ({**WINDOW, "window_ms": ...}, ["missing field `window_ms`"]),
        ({**WINDOW, "max_calls": ...}, ["missing field `max_calls`"]),
        ({**WINDOW, "capacity": 3}, ["a sliding window has no bucket"]),
        ({**WINDOW, "cost_tokens_per_call": 2}, ["a sliding window has no tokens"]),
        ({**WINDOW, "max_calls": 0}, ["must be at least 1, got 0"]),
        ({"refill_tokens": ...}, ["missing field `refill_tokens`"]),
    ],
)
def test_a_limit_is_a_bucket_or_a_window(changes, messages):
    assert [each[1] for each in told(rule("rate_limit", **changes))] == messages


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        ("2030-01-01T00:00:00Z", True),
        ("2030-01-01T00:00:00.5Z", True),
        ("2030-01-01T00:00:00+01:00", False),
        ("2030-02-31T00:00:00Z", False),
        ("soon", False),
    ],
)
def test_a_policy_ends_at_a_time(text, is_time):
    found = semantic_misfits(bundle(expires_at=text))
    assert [each.message for each in found] == ([] if is_time else ["is not a time"])


def test_contents_and_patterns_cost():
    def cost(*rules):
        return worst_call(rule_costs(bundle(*rules)))

    plain = cost(rule("deny"))
    assert cost(rule("deny", match={"text": {"any_of": ["a", "b"]}})) == plain + 40
    assert cost(rule("deny", match={"text": {"regex": "abc"}})) > plain
    assert cost(rule("deny", match={"data_any": ["PCI"]})) == plain + 1
    assert cost(rule("sequence", pattern=["a?b", "c"])) > cost(rule("sequence", pattern=["a", "c"]))
    costly = [rule("deny", str(n), match={"text": {"any_of": ["x"] * 256}}) for n in range(9)]
    assert "too expensive" in told(*costly)[0][1]
