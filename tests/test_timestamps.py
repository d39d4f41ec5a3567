"""The one reader of RFC 3339: by hand for our own form, with `datetime` for every other."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.clock import rfc3339
from subluminal.timestamps import parse_rfc3339


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00.000Z", 0),
        ("2024-02-29T12:00:00Z", 1_709_208_000_000),
        ("2026-11-15T05:48:52.123Z", 1_794_721_732_123),
        ("2000-03-01T00:00:00.500Z", 951_868_800_500),
        ("2026-11-15T05:48:52.5Z", 1_794_721_732_500),
        ("2026-11-15T06:48:52.123+01:00", 1_794_721_732_123),
        ("2026-11-15 05:48:52.123Z", 1_794_721_732_123),
    ],
)
def test_a_timestamp_is_read_in_every_form(text: str, ms: int) -> None:
    assert parse_rfc3339(text) == ms


@given(st.integers(0, 253_402_300_799_999))
def test_what_the_clock_writes_is_read_back(wall_ms: int) -> None:
    assert parse_rfc3339(rfc3339(wall_ms)) == wall_ms


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)))
def test_the_reader_by_hand_agrees_with_datetime(moment: datetime) -> None:
    whole = moment.replace(microsecond=0, tzinfo=UTC)
    text = whole.strftime("%Y-%m-%dT%H:%M:%S") + "Z"
    assert parse_rfc3339(text) == int(whole.timestamp()) * 1000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-11-15T05:48:52.123",
        "2026-11-15",
        "1969-12-31T23:59:59.999Z",
        "2026-02-29T00:00:00.000Z",
        "2100-02-29T00:00:00.000Z",
        "2026-04-31T00:00:00.000Z",
        "2026-13-01T00:00:00.000Z",
        "2026-00-01T00:00:00.000Z",
        "2026-01-00T00:00:00.000Z",
        "2026-01-01T24:00:01.000Z",
        "2026-01-01T00:60:00.000Z",
        "2026-01-01T00:00:60.000Z",
        "2026-01-01T00:00:00.1 2Z",
        "2026-01-01T 0:00:00.000Z",
        "+026-01-01T00:00:00.000Z",
    ],
)
def test_what_is_not_a_time_with_a_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rfc3339(text)
