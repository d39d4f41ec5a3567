"""Durations and sizes as people type and read them."""

import pytest

from subluminal.errors import UsageError
from subluminal.operator.amounts import duration, milliseconds_in, size


@pytest.mark.parametrize(
    ("text", "ms"), [("90s", 90_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000)]
)
def test_durations_are_parsed(text, ms):
    assert milliseconds_in(text, "--ttl") == ms


@pytest.mark.parametrize("text", ["5x", "", "0s", "1.5h", "-1m", "10 m", "99999999s"])
def test_anything_else_is_not_a_duration(text):
    with pytest.raises(UsageError) as raised:
        milliseconds_in(text, "--ttl")
    assert str(raised.value) == f"`--ttl {text}` is not a duration"
    assert raised.value.hint == "write it as 30s, 10m, 2h or 1d"


@pytest.mark.parametrize(
    ("ms", "text"), [(3_600_000, "1h"), (5_400_000, "90m"), (1_500, "1500ms"), (172_800_000, "2d")]
)
def test_durations_are_formatted_in_the_largest_unit_that_divides_them(ms, text):
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 20, "1.0 MiB"), (3 << 30, "3.0 GiB")],
)
def test_sizes(count, text):
    assert size(count) == text
