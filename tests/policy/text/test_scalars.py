"""YAML 1.2 core schema: the values that YAML 1.1 mangles stay what their author wrote."""

import pytest

from subluminal.errors import SubluminalError
from subluminal.policy.text.scalars import resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("010", 10),
        ("-010", -10),
        ("+7", 7),
        ("1:30", "1:30"),
        ("12:30:45", "12:30:45"),
        ("0o17", 15),
        ("0x1f", 31),
        ("0xFF", 255),
        ("0o19", "0o19"),
        ("-0x1f", "-0x1f"),
        ("0b101", "0b101"),
        ("1_000", "1_000"),
        ("2025-12-15", "2025-12-15"),
        ("2025-12-15T12:00:00Z", "2025-12-15T12:00:00Z"),
        ("1.0.0", "1.0.0"),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("+1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-", "-"),
        ("+", "+"),
        (".", "."),
        ("...", "..."),
        ("=", "="),
        ("<<", "<<"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("tRue", "tRue"),
        ("false", False),
        ("null", None),
        ("Null", None),
        ("~", None),
        ("", None),
        ("nULL", "nULL"),
        ("inf", "inf"),
        ("nan", "nan"),
        ("12345678901234567890123", 12345678901234567890123),
        ("1\n2", "1\n2"),
    ],
)
def test_a_plain_scalar_is_read_as_the_core_schema_says(text, value):
    got = resolve(text)
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN"])
def test_numbers_that_json_does_not_have_are_refused(text):
    with pytest.raises(SubluminalError, match="JSON has no number"):
        resolve(text)


@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "0.1234567890123456789",
        "1." + "0" * 500,
        "9" * 401,
        "0x" + "f" * 400,
        "1e" + "9" * 30,
    ],
)
def test_numbers_that_would_change_are_refused(text):
    with pytest.raises(SubluminalError) as refused:
        resolve(text)
    assert "quotes" in (refused.value.hint or "")
