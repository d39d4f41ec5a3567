"""Windows: exact up to 64 entries; above, never too short and at most one bucket too long (shared-runs)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subluminal.contracts.counters import WINDOW_INTS
from subluminal.policy import windows

moments = st.lists(st.integers(0, 5_000), min_size=1, max_size=200).map(sorted)
window_sizes = st.one_of(st.sampled_from([1, 63, 64, 65, 640, 6_400]), st.integers(1, 5_000))


def cell_of(times, threshold, window_ms):
    cell = ()
    for at in times:
        cell = windows.record(cell, threshold, window_ms, at)
    return cell


def entries_since(times, now, window_ms):
    return sum(0 <= now - at < window_ms for at in times)


@given(moments, window_sizes, st.integers(1, 64), st.integers(0, 2_000))
def test_up_to_64_entries_a_window_is_exact(times, window_ms, threshold, later):
    now = times[-1] + later

    cell = cell_of(times, threshold, window_ms)

    expected = min(threshold, entries_since(times, now, window_ms))
    assert windows.count(cell, threshold, window_ms, now) == expected
    assert len(cell) <= threshold


@given(moments, window_sizes, st.integers(65, 1_000), st.integers(0, 2_000))
def test_above_64_entries_a_window_forgets_none_too_early(times, window_ms, threshold, later):
    now = times[-1] + later

    cell = cell_of(times, threshold, window_ms)

    counted = windows.count(cell, threshold, window_ms, now)
    longest = windows.width(window_ms) * 64
    assert entries_since(times, now, window_ms) <= counted <= entries_since(times, now, longest)
    assert len(cell) <= WINDOW_INTS


def test_an_entry_at_the_end_of_its_bucket_lives_as_long_as_the_window():
    """64 buckets that together are only as long as the window would drop it 99 ms early."""
    cell = windows.record((), 65, 6_400, 99)

    assert windows.count(cell, 65, 6_400, 6_498) == 1


@pytest.mark.parametrize("threshold", [3, 65])
def test_an_entry_that_another_shim_saw_a_moment_later_counts(threshold):
    """Clocks are read before the lock is taken, so entries may come out of order."""
    cell = windows.record((), threshold, 100, 10)

    cell = windows.record(cell, threshold, 100, 9)

    assert windows.count(cell, threshold, 100, 9) == 2
    assert windows.count(cell, threshold, 100, 10) == 2


@pytest.mark.parametrize("threshold", [3, 65])
def test_what_was_seen_before_the_machine_restarted_is_forgotten(threshold):
    cell = windows.record((), threshold, 100, 1_000_000)

    assert windows.count(cell, threshold, 100, 5) == 0
    assert windows.count(windows.record(cell, threshold, 100, 5), threshold, 100, 5) == 1
