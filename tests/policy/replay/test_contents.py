"""Replay of rules about contents: recorded arguments are read again, hidden ones are undetermined."""

import pytest
from tests.policy.bundles import bundle, rule
from tests.policy.replay.runs import Record, changes
from tests.requirements import requirement

from subluminal.contracts.vocabulary import DataClass, Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.replay.hidden_args import PartialArgs

TEXT = rule("deny", "text", match={"text": {"any_of": ["drop"]}})
DATA = rule("deny", "data", match={"data_any": ["PII"]})


def policy(*rules, **more):
    return compile_bundle(bundle(*rules, **more))


def masked(*keys, **known):
    return PartialArgs(known, frozenset(keys).__contains__, frozenset(keys))


def emails(args):
    return frozenset({DataClass.PII_EMAIL} if "@" in str(args) else ())


def replayed(candidate, *calls, **more):
    record = Record((Layer.REPOSITORY, policy()))
    for args, on_record in calls:
        record.call(args=args, on_record=on_record)
    return changes(record.replay(candidate, **more)[0])


@requirement("trust:replay-contents")
def test_recorded_arguments_are_read_again():
    calls = [({"q": "DROP it"}, None), ({"q": "keep it"}, None), ({"to": "kim@example.com"}, None)]
    assert replayed(policy(TEXT, DATA), *calls, read_data=emails) == [
        "newly_blocked",
        "same",
        "newly_blocked",
    ]


@requirement("trust:replay-contents")
@pytest.mark.parametrize("each", [TEXT, DATA])
def test_what_is_masked_is_undetermined(each):
    calls = [({"q": "secret"}, masked("q"))]
    assert replayed(policy(each), *calls, read_data=emails) == ["undetermined"]
    narrow = {**each, "match": {**each["match"], "tool_name": {"glob": ["other"]}}}
    assert replayed(policy(narrow), *calls, read_data=emails) == ["same"]


def test_data_is_undetermined_if_nobody_can_look():
    assert replayed(policy(DATA), ({"q": "x"}, None)) == ["undetermined"]


def test_a_rule_that_refuses_before_is_certain():
    every = rule("deny", "every")
    assert replayed(policy(every, TEXT), ({"q": "x"}, masked("q"))) == ["newly_blocked"]


def test_too_many_possibilities_are_undetermined():
    many = [rule("deny", f"r{n}", match={"text": {"any_of": [f"x{n}"]}}) for n in range(80)]
    assert replayed(policy(*many), ({"q": "x"}, masked("q"))) == ["undetermined"]
    keys = [rule("deny", f"k{n}", match={"args": {"key_equals": {f"k{n}": 1}}}) for n in range(70)]
    hidden = masked(*(f"k{n}" for n in range(70)))
    assert replayed(policy(*keys, TEXT), ({"q": "x"}, hidden)) == ["undetermined"]


def test_predicates_about_a_hidden_argument_try_both_answers():
    for args in ({"key_not_equals": {"q": 1}}, {"numeric_range": {"q": {"gt": 1, "lt": 3}}}):
        made = rule("deny", match={"args": args})
        assert replayed(policy(made), ({"q": 2}, masked("q"))) == ["undetermined"]


def test_sequences_windows_budgets_and_ends_are_replayed():
    own = policy(
        rule("sequence", pattern=["push", "pull"]),
        rule("budget", limit_calls=3, reset_ms=50),
        expires_at="1970-01-01T00:00:00.009Z",
    )
    record = Record((Layer.REPOSITORY, own))
    for tool in ("push", "pull", "x", "y", "z", "z", "z"):
        record.call(tool)
    rows = record.replay(own)[0]
    assert changes(rows) == ["same"] * 7
    assert {row.now.reason_code for row in rows} >= {"SEQUENCE_MATCHED", "POLICY_EXPIRED"}
