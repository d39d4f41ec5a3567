"""Timestamps of events are the clock's, whatever second was asked for before."""

from hypothesis import given
from hypothesis import strategies as st

from subluminal.clock import rfc3339
from subluminal.core.records.timestamps import Timestamps

NEAR = 1_763_193_600_000
moments = st.integers(0, 4_102_444_800_000) | st.integers(NEAR - 3_000, NEAR + 3_000)


@given(st.lists(moments, min_size=1, max_size=8))
def test_they_are_the_clocks(readings: list[int]) -> None:
    timestamps = Timestamps()
    assert [timestamps.at(each).decode() for each in readings] == [rfc3339(r) for r in readings]
