"""Suggested arguments: each operation, and that deeply nested arguments are safe."""

import pytest

from subluminal.policy.rules.access import suggested_args

NO = {"remove": False, "clamp_min": None, "clamp_max": None, "one_of": []}


@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        ({"set": 1}, 2, {"k": 1}),
        ({"set": 1}, 1.0, None),
        ({"set": None}, 1, {"k": None}),
        ({"remove": True}, 1, {}),
        ({"clamp_max": 9}, 10, {"k": 9}),
        ({"clamp_max": 9}, 9, None),
        ({"clamp_min": 1, "clamp_max": 9}, 0, {"k": 1}),
        ({"clamp_min": 1}, True, None),
        ({"one_of": ["a", "b"]}, "c", {"k": "a"}),
        ({"one_of": ["a", "b"]}, "b", None),
    ],
)
def test_an_operation_corrects_its_key(operation, value, expected):
    args = {"k": value}

    assert suggested_args({"k": NO | operation}, args) == expected
    assert args == {"k": value}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [({"set": 1}, {"k": 1}), ({"remove": True}, None), ({"one_of": [1]}, {"k": 1})],
)
def test_a_missing_key_is_given_or_stays_missing(operation, expected):
    assert suggested_args({"k": NO | operation}, {}) == expected


@pytest.mark.parametrize(
    "operation", [{"set": 1}, {"set": [[1]]}, {"one_of": [1]}, {"clamp_max": 1}]
)
def test_arguments_nested_to_the_limit_are_compared_safely(operation):
    """512 levels are valid arguments, and more than the interpreter's stack."""
    deep = {"x": 1}
    for _ in range(510):
        deep = {"d": deep}

    mended = suggested_args({"k": NO | operation}, {"deep": deep, "k": 9})
    assert mended["deep"] is deep

    suggested_args({"k": NO | operation}, {"k": deep})
