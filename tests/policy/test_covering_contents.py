"""When one match about contents covers another; checked against the tests that calls pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.contracts.bundle import ArgsMatch, NumericRange, TextMatch
from subluminal.policy.covering import covers_args
from subluminal.policy.covering_contents import (
    contradicts_itself,
    covers_data,
    covers_range,
    covers_text,
)
from subluminal.policy.predicates import args_predicate


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (None, {"any_of": ["x"]}, True),
        ({"any_of": ["x"]}, None, False),
        ({"any_of": ["Drop"]}, {"any_of": ["drop table", "DROP view"]}, True),
        ({"any_of": ["drop table"]}, {"any_of": ["drop"]}, False),
        ({"any_of": ["a"]}, {"none_of": ["b"]}, False),
        ({"none_of": ["drop table"]}, {"none_of": ["DROP"]}, True),
        ({"none_of": ["drop"]}, {"none_of": ["drop table"]}, False),
        ({"regex": "x"}, {"regex": "x", "any_of": ["y"]}, True),
        ({"regex": "x"}, {"regex": "xy"}, False),
    ],
)
def test_texts(wide, narrow, expected):
    made = [None if each is None else TextMatch(**each) for each in (wide, narrow)]
    assert covers_text(*made) is expected


def test_texts_that_contradict_each_other():
    assert contradicts_itself(TextMatch(any_of=["drop table", "X"], none_of=["DROP", "x"]))
    assert not contradicts_itself(TextMatch(any_of=["drop", "x"], none_of=["x"]))
    assert not contradicts_itself(TextMatch(none_of=["x"]))


def test_data():
    assert covers_data([], ["PCI"])
    assert covers_data(["PII"], ["PII.ssn", "PII.email"])
    assert not covers_data(["PII.ssn"], ["PII"])
    assert not covers_data(["PCI"], [])


numbers = st.none() | st.integers(-2, 2)
ranges = st.builds(NumericRange, min=numbers, max=numbers, gt=numbers, lt=numbers)
SAMPLES = [each / 2 for each in range(-8, 9)]


def inside(bounds, number):
    given = {name: getattr(bounds, name) for name in ("min", "max", "gt", "lt")}
    spec = {"has_keys": [], "key_equals": {}, "key_in": {}, "numeric_range": {"n": given}}
    return args_predicate(spec)({"n": number})


@given(ranges, ranges)
def test_a_range_that_covers_another_has_all_its_numbers(wide, narrow):
    if covers_range(wide, narrow):
        assert all(inside(wide, each) for each in SAMPLES if inside(narrow, each))


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ({"key_not_equals": {"a": 1}}, {"key_not_equals": {"a": 1.0}}, True),
        ({"key_not_equals": {"a": 1}}, {"key_equals": {"a": 2}}, True),
        ({"key_not_equals": {"a": 1}}, {"key_in": {"a": [1, 2]}}, False),
        ({"key_not_equals": {"a": 1}}, {"numeric_range": {"a": NumericRange(gt=1)}}, True),
        ({"key_not_equals": {"a": 1}}, {"numeric_range": {"a": NumericRange(min=1)}}, False),
        ({"key_not_equals": {"a": 1}}, {}, False),
        ({"numeric_range": {"a": NumericRange(gt=0)}}, {"numeric_range": {"a": NumericRange(min=1)}}, True),
        ({"numeric_range": {"a": NumericRange(gt=0)}}, {"numeric_range": {"a": NumericRange(min=0)}}, False),
        ({"numeric_range": {"a": NumericRange(gt=0)}}, {"key_equals": {"a": "x"}}, False),
    ],
)  # fmt: skip
def test_arguments(wide, narrow, expected):
    assert covers_args(ArgsMatch(**wide), ArgsMatch(**narrow)) is expected
