"""Dates of a bundle: ISO 8601 as JavaScript reads it, but never local time."""

import pytest

from subluminal.policy.dialects.agent_spm.dates import rfc3339_of


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2027-01-21T00:00:00.000Z", "2027-01-21T00:00:00.000Z"),
        ("2027-01-21T10:30:00+02:00", "2027-01-21T10:30:00+02:00"),
        ("2027-01-21T10:30Z", "2027-01-21T10:30:00Z"),
        ("2027-01-21", "2027-01-21T00:00:00Z"),
        ("2027-02", "2027-02-01T00:00:00Z"),
        ("2027", "2027-01-01T00:00:00Z"),
    ],
)
def test_a_date_is_written_as_rfc_3339(text: str, read: str):
    assert rfc3339_of(text) == read


@pytest.mark.parametrize(
    "text",
    ["", "tomorrow", "2027-02-30", "2027-13-01T00:00:00Z", "2027-01-21T10:30:00", "1 Jan 2027",
     "2027-01-21T25:00:00Z", "٢٠٢٧"],
)  # fmt: skip
def test_anything_else_is_not_a_date(text: str):
    assert rfc3339_of(text) is None
