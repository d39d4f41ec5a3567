"""Both clocks, and the Pack's timestamps."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from subluminal.clock import now, rfc3339


def test_clocks_do_not_run_backwards() -> None:
    first, second = now(), now()
    assert second.mono_ms >= first.mono_ms


@given(st.integers(0, 253402300799999))
def test_a_timestamp_is_rfc3339_in_utc_with_milliseconds(wall_ms: int) -> None:
    text = rfc3339(wall_ms)
    read = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    since = read - datetime(1970, 1, 1, tzinfo=UTC)
    assert len(text) == 24
    assert since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000 == wall_ms
