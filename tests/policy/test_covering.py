"""What is known about two matches: proofs only. Random calls look for a counterexample."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.bundles import bundle, rule

from subluminal.contracts.bundle import Match
from subluminal.contracts.identity import Identity
from subluminal.contracts.vocabulary import Layer
from subluminal.policy.compiling import compile_bundle
from subluminal.policy.counters import MemoryCounters
from subluminal.policy.covering import covers, disjoint
from subluminal.policy.evaluation import Call, Engine


def match_of(plain: dict) -> Match:
    return msgspec.convert(plain, Match)


def names(*globs: str, regex=()) -> dict:
    return {"tool_name": {"glob": list(globs), "regex": list(regex)}}


def args(**predicates) -> dict:
    return {"args": predicates}


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ({}, {}, True),
        ({}, names("a"), True),
        (names("a"), {}, False),
        (names("*"), {}, True),
        (names("**"), {}, True),
        (names(regex=[".*"]), names("x"), True),
        ({"tool_name": {}}, {}, True),
        (names("a*"), names("*"), False),
        (names("a*"), names("ab", "abc*"), True),
        (names("a*"), names("ab", "b"), False),
        (names("a*"), names("[ab]*"), False),
        (names("*b"), names("a*b"), True),
        (names("*b"), names("a*bc"), False),
        (names("*b"), names("[a]b"), False),
        (names("*mid*"), names("a_mid_*"), True),
        (names("*mid*"), names("*_mid_"), True),
        (names("*mid*"), names("*mid*x"), False),
        (names("a?c"), names("abc"), True),
        (names("a?c"), names("a?c"), True),
        (names("a?c"), names("a*c"), False),
        (names("a*", regex=["x"]), names("ab", regex=["x"]), True),
        (names("a*"), names("ab", regex=["^ab$"]), False),
        ({"server_name": {"glob": ["git"]}}, names("a"), False),
        ({"risk_class": ["a", "b"]}, {"risk_class": ["a"]}, True),
        ({"risk_class": ["a"]}, {"risk_class": ["a", "b"]}, False),
        ({"risk_class": ["a"]}, {}, False),
        ({}, {"risk_class": ["a"]}, True),
        (args(has_keys=["k"]), args(key_equals={"k": 1}), True),
        (args(has_keys=["k"]), {}, False),
        (args(), {}, True),
        (args(key_equals={"k": 1}), args(key_equals={"k": 1.0}), True),
        (args(key_equals={"k": 1}), args(key_equals={"k": True}), False),
        (args(key_equals={"k": 1}), args(key_in={"k": [1]}), True),
        (args(key_in={"k": [1, 2]}), args(key_equals={"k": 2}), True),
        (args(key_in={"k": [1, 2]}), args(key_in={"k": [2, 3]}), False),
        (args(key_in={"k": [1]}), args(has_keys=["k"]), False),
        (args(numeric_range={"k": {"min": 1}}), args(numeric_range={"k": {"min": 2, "max": 3}}), True),
        (args(numeric_range={"k": {"min": 1}}), args(numeric_range={"k": {"max": 3}}), False),
        (args(numeric_range={"k": {"max": 3}}), args(numeric_range={"k": {"min": 1}}), False),
        (args(numeric_range={"k": {"min": 1, "max": 3}}), args(key_in={"k": [1, 3]}), True),
        (args(numeric_range={"k": {"min": 1}}), args(key_equals={"k": "a"}), False),
        (args(numeric_range={"k": {"min": 1}}), args(key_equals={"k": 0}), False),
        (args(numeric_range={"k": {"min": 1}}), args(has_keys=["k"]), False),
        ({"time": {"utc_hours": [[9, 17]]}}, {"time": {"utc_hours": [[10, 12]], "weekdays": ["mon"]}}, True),
        ({"time": {"utc_hours": [[9, 17]]}}, {}, False),
        ({"time": {"utc_hours": [[0, 12], [12, 24]]}}, {}, True),
        ({"time": {"utc_hours": [[22, 6]]}}, {"time": {"utc_hours": [[23, 24]]}}, True),
        ({"time": {"weekdays": ["mon"]}}, {"time": {"weekdays": ["tue"]}}, False),
    ],
)  # fmt: skip
def test_a_match_covers_another_where_that_is_known(wide, narrow, expected):
    assert covers(match_of(wide), match_of(narrow)) is expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (names("a"), names("b"), True),
        (names("a"), names("a*"), False),
        (names("b*"), names("a"), True),
        (names("read_*"), names("write_*"), True),
        (names("*_read"), names("*_write"), True),
        (names("a*"), names("ab*"), False),
        (names("a*"), names("*b"), False),
        (names("a", regex=["b"]), names("b"), False),
        (names(), names("b"), False),
        ({}, names("b"), False),
        ({"server_name": {"glob": ["x"]}}, {"server_name": {"glob": ["y"]}}, True),
    ],
)  # fmt: skip
def test_matches_are_disjoint_where_names_prove_it(left, right, expected):
    assert disjoint(match_of(left), match_of(right)) is expected
    assert disjoint(match_of(right), match_of(left)) is expected


globs = st.text("ab*?", min_size=1, max_size=4)
values = st.sampled_from([0, 1, 1.0, True, "1", None, 2])
matches = st.fixed_dictionaries(
    {},
    optional={
        "tool_name": st.fixed_dictionaries({"glob": st.lists(globs, min_size=1, max_size=2)}),
        "args": st.fixed_dictionaries(
            {},
            optional={
                "has_keys": st.just(["k"]),
                "key_in": st.fixed_dictionaries({"k": st.lists(values, min_size=1, max_size=2)}),
                "numeric_range": st.just({"k": {"min": 1}}),
            },
        ),
        "time": st.fixed_dictionaries(
            {"utc_hours": st.sampled_from([[[0, 12]], [[6, 18]], [[22, 6]], [[0, 24]]])}
        ),
    },
)
calls = st.tuples(
    st.text("ab", max_size=4),
    st.dictionaries(st.just("k"), values, max_size=1),
    st.integers(0, 23),
)


def denies(match: dict, call) -> bool:
    engine = Engine([(Layer.USER, compile_bundle(bundle(rule("deny", match=match))))], Identity())
    tool, arguments, hour = call
    asked = Call("s", tool, arguments, "0" * 64)
    found = engine.evaluate(asked, MemoryCounters(), wall_ms=hour * 3_600_000, mono_ms=0)
    return found.decision.rule_id == "deny"


@given(matches, matches, st.lists(calls, min_size=1, max_size=8))
@settings(max_examples=400)
def test_what_is_proven_holds_for_every_call(left, right, many):
    covering = covers(match_of(left), match_of(right))
    apart = disjoint(match_of(left), match_of(right))
    for call in many:
        if covering and denies(right, call):
            assert denies(left, call)
        if apart:
            assert not (denies(left, call) and denies(right, call))
