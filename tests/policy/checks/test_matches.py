"""Matches that cannot be meant (Pack 2.4)."""

import pytest
from tests.policy.bundles import bundle, rule

from subluminal.policy.checks.matches import match_misfits


def told(**match) -> list[str]:
    (each,) = bundle(rule("deny", match=match)).rules
    return [
        f"{'.'.join(map(str, found.path))}: {found.message}" for found in match_misfits(each.match)
    ]


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ({"tool_name": {"glob": [""]}}, "match.tool_name.glob.0: invalid glob: an empty glob matches nothing"),
        ({"server_name": {"glob": ["[a"]}}, "match.server_name.glob.0: invalid glob `[a`: `[` without a closing `]`"),
        ({"tool_name": {"regex": ["(?!a)"]}}, "match.tool_name.regex.0: invalid regex `(?!a)`: a lookahead `(?!` cannot be matched in linear time"),
        ({"tool_name": {"regex": ["ok", "(a"]}}, "match.tool_name.regex.1: invalid regex `(a`: missing ): (a"),
        ({"risk_class": ["a", ""]}, "match.risk_class.1: must not be empty"),
        ({"args": {"key_in": {"k": []}}}, "match.args.key_in.k: an empty list matches nothing"),
        ({"args": {"key_equals": {"k": float("nan")}}}, "match.args.key_equals.k: must be a finite number"),
        ({"args": {"key_in": {"k": [1, float("inf")]}}}, "match.args.key_in.k.1: must be a finite number"),
        ({"args": {"numeric_range": {"k": {}}}}, "match.args.numeric_range.k: needs `min` or `max`"),
        ({"args": {"numeric_range": {"k": {"min": 2, "max": 1}}}}, "match.args.numeric_range.k: `min` 2 is above `max` 1"),
        ({"args": {"numeric_range": {"k": {"min": float("-inf")}}}}, "match.args.numeric_range.k.min: must be a finite number"),
        ({"time": {"utc_hours": [[1]]}}, "match.time.utc_hours.0: expected two hours, got 1"),
        ({"time": {"utc_hours": [[9, 17], [24, 3]]}}, "match.time.utc_hours.1: hours go from 0 to 24"),
        ({"time": {"utc_hours": [[0, 25]]}}, "match.time.utc_hours.0: hours go from 0 to 24"),
        ({"time": {"utc_hours": [[-1, 4]]}}, "match.time.utc_hours.0: hours go from 0 to 24"),
        ({"time": {"utc_hours": [[4, 4]]}}, "match.time.utc_hours.0: from 4 to 4 is no time at all"),
    ],
)  # fmt: skip
def test_an_impossible_match_is_refused(match, message):
    assert told(**match) == [message]


@pytest.mark.parametrize(
    "match",
    [
        {},
        {"tool_name": {"glob": ["a*", "[!x]?"], "regex": ["^a.*b$"]}, "risk_class": ["x"]},
        {"args": {"numeric_range": {"k": {"min": 1, "max": 1}}, "key_in": {"k": [None]}}},
        {"time": {"utc_hours": [[0, 24], [22, 6]], "weekdays": ["mon"]}},
    ],
)
def test_a_possible_match_is_taken(match):
    assert told(**match) == []
