"""How long a grant may last, and how many calls it may be for."""

import pytest

from subluminal.core.controls.grants import MAX_TTL_MS, MAX_USES
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.approving import check_uses, grant_ms

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("ttl", "longest_ms", "expected_ms"),
    [
        (None, None, HOUR_MS),
        (None, 60_000, 60_000),
        ("10m", None, 600_000),
        ("10m", HOUR_MS, 600_000),
        ("7d", None, MAX_TTL_MS),
    ],
)
def test_a_grant_lasts_as_asked_within_what_the_rule_allows(ttl, longest_ms, expected_ms):
    assert grant_ms(ttl, HOUR_MS, "rule", longest_ms) == expected_ms


def test_a_grant_never_lasts_longer_than_the_rule_allows():
    with pytest.raises(SubluminalError, match="rule `r` allows a grant of at most 10m"):
        grant_ms("11m", HOUR_MS, "r", 600_000)
    with pytest.raises(UsageError, match="can be at most 7d"):
        grant_ms("8d", HOUR_MS, "r", None)


@pytest.mark.parametrize("uses", [0, -1, MAX_USES + 1])
def test_the_number_of_uses_is_bounded(uses):
    with pytest.raises(UsageError, match="must be between 1 and 1000"):
        check_uses(uses)
