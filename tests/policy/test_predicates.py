"""Numbers that a double cannot hold come as Decimal, and compare as the upstream reads them."""

from decimal import Decimal

import pytest

from subluminal.policy.predicates import args_predicate, is_number, same_value, time_predicate

NOTHING = {"has_keys": [], "key_equals": {}, "key_in": {}, "numeric_range": {}}
FINE = Decimal("0.1000000000000000000000000001")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (Decimal(1), 1, True),
        (1.0, Decimal(1), True),
        (FINE, 0.1, True),
        (FINE, 0.2, False),
        (Decimal("1E400"), 10**400, False),
        (Decimal(1), True, False),
        (Decimal(1), "1", False),
        ([Decimal(1)], [1], True),
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 1], False),
        (None, False, False),
    ],
)
def test_values_are_equal_as_json_values(left, right, expected):
    assert same_value(left, right) is expected
    assert same_value(right, left) is expected


@pytest.mark.parametrize("bounds", [{"min": 0.1, "max": None}, {"min": None, "max": 0.1}])
def test_a_range_reads_a_number_as_the_upstream_will(bounds):
    """More digits than a double holds must not lead past a bound, from either side (byte-transparent)."""
    predicate = args_predicate(NOTHING | {"numeric_range": {"n": bounds}})

    assert predicate({"n": FINE})
    assert predicate({"n": Decimal("0.0999999999999999999999999")})
    assert predicate({"n": Decimal("1E400")}) is (bounds["max"] is None)


def test_a_long_list_takes_each_of_its_values_and_no_other():
    values = [*range(500), *(f"repo{n}" for n in range(500)), None, True, [1], {"a": 1}]
    predicate = args_predicate(NOTHING | {"key_in": {"k": values}})

    assert all(predicate({"k": value}) for value in values)
    assert all(predicate({"k": value}) for value in (1.0, Decimal(2), [1.0], {"a": Decimal(1)}))
    assert not any(predicate({"k": value}) for value in ("1", False, 500, 0.5, [], {}, [True]))
    assert not predicate({})


def test_true_is_not_a_number():
    assert not is_number(True)
    assert is_number(FINE)


def test_an_empty_match_has_no_predicate():
    """An entry without a condition costs nothing."""
    assert args_predicate(None) is None
    assert args_predicate(NOTHING) is None
    assert time_predicate(None) is None
    assert time_predicate({"utc_hours": [], "weekdays": []}) is None


def test_time_before_1970_has_hours_and_days_too():
    """1969-12-31 was a Wednesday."""
    predicate = time_predicate({"utc_hours": [[23, 24]], "weekdays": ["wed"]})

    assert predicate(-1)
    assert not predicate(0)
