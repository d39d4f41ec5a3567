"""The interface to a run's counters: sizes that every store can rely on (shared-runs)."""

from tests.requirements import requirement

from subluminal.contracts.counters import WINDOW_INTS, CountersFull
from subluminal.contracts.limits import MAX_WINDOW_ENTRIES

pytestmark = requirement("house:counters")


def test_a_cell_holds_a_window_exactly_or_in_buckets() -> None:
    """A bucket is (index, count), so the same room holds as many buckets as exact entries."""
    assert WINDOW_INTS == 2 * MAX_WINDOW_ENTRIES


def test_a_full_store_is_not_an_error_for_the_operator() -> None:
    """It becomes an evaluation error; the command line never prints it."""
    assert not hasattr(CountersFull(), "hint")
