"""What every store of counters does (contracts.counters): one body, run against each of them.

A store's test module subclasses `CountersSuite` and gives it a `make_counters` fixture, a function
that returns an empty store, ready to be read and written:

    class TestMemoryCounters(CountersSuite):
        @pytest.fixture
        def make_counters(self):
            return MemoryCounters
"""

import hashlib
from collections.abc import Callable

import pytest

from subluminal.contracts.counters import (
    PAIR_INTS,
    WINDOW_INTS,
    CellKind,
    Counters,
    CountersFull,
)
from subluminal.contracts.limits import MAX_COUNTERS, MAX_RECENT_KEYS

PAIR, WINDOW, RECENT = CellKind.PAIR, CellKind.WINDOW, CellKind.RECENT
KEY_BYTES = {PAIR: 16, WINDOW: 16, RECENT: 32}
MAX_INTS = {PAIR: PAIR_INTS, WINDOW: WINDOW_INTS, RECENT: WINDOW_INTS}
SMALLEST, LARGEST = -(2**63), 2**63 - 1

TABLES = (PAIR, WINDOW, RECENT)
"""The kinds with many cells. The level of a run has a test of its own (`test_taint`)."""
every_kind = pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.name)
every_bounded_kind = pytest.mark.parametrize("kind", [PAIR, WINDOW], ids=lambda kind: kind.name)


def key_of(kind: CellKind, name: object) -> bytes:
    """A key of the right length for a name; keys are digests."""
    return hashlib.sha256(str(name).encode()).digest()[: KEY_BYTES[kind]]


def fill(counters: Counters, kind: CellKind) -> int:
    """Writes new keys until the store refuses one. Returns how many it took."""
    for number in range(MAX_COUNTERS + 1):
        try:
            counters.write([(kind, key_of(kind, number), (number,))])
        except CountersFull:
            return number
    raise AssertionError(f"{kind.name} takes more than {MAX_COUNTERS} keys")


class CountersSuite:
    """The tests. Names that start with `Test` are the subclasses'."""

    @pytest.fixture
    def make_counters(self) -> Callable[[], Counters]:
        """Returns an empty store; each subclass has its own."""
        raise NotImplementedError

    @pytest.fixture
    def counters(self, make_counters: Callable[[], Counters]) -> Counters:
        """An empty store."""
        return make_counters()

    @every_kind
    def test_a_cell_that_was_never_written_is_empty(self, counters, kind):
        assert counters.read(kind, key_of(kind, "never")) == ()

    @every_kind
    def test_a_cell_is_read_as_it_was_written(self, counters, kind):
        for length in range(MAX_INTS[kind] + 1):
            cell = tuple(range(length))
            counters.write([(kind, key_of(kind, length), cell)])
            assert counters.read(kind, key_of(kind, length)) == cell

    @every_kind
    def test_the_last_write_wins_whatever_the_lengths(self, counters, kind):
        key = key_of(kind, "grows and shrinks")
        longest = MAX_INTS[kind]
        for length in [1, longest, 2, longest, longest - 1, 0, 1]:
            cell = tuple(range(length, 2 * length))
            counters.write([(kind, key, cell)])
            assert counters.read(kind, key) == cell

    @every_kind
    def test_the_last_of_two_updates_of_one_cell_wins(self, counters, kind):
        key = key_of(kind, "twice")
        counters.write([(kind, key, (1,)), (kind, key, (2, 3))])
        assert counters.read(kind, key) == (2, 3)

    @every_kind
    def test_cells_hold_all_of_64_bits(self, counters, kind):
        key = key_of(kind, "extreme")
        counters.write([(kind, key, (SMALLEST, LARGEST))])
        assert counters.read(kind, key) == (SMALLEST, LARGEST)

    def test_kinds_do_not_share_keys(self, counters):
        key = key_of(PAIR, "one")
        counters.write([(PAIR, key, (1,))])
        assert counters.read(WINDOW, key) == ()

    def test_updates_may_come_from_any_iterable_and_be_none_at_all(self, counters):
        counters.write([])
        counters.write((PAIR, key_of(PAIR, n), (n,)) for n in range(3))
        assert [counters.read(PAIR, key_of(PAIR, n)) for n in range(3)] == [(0,), (1,), (2,)]

    @every_bounded_kind
    def test_a_full_store_refuses_new_keys_and_keeps_serving_old_ones(self, counters, kind):
        taken = fill(counters, kind)
        counters.write([(kind, key_of(kind, 0), (-1,))])
        assert counters.read(kind, key_of(kind, 0)) == (-1,)
        assert counters.read(kind, key_of(kind, taken - 1)) == (taken - 1,)
        assert counters.read(kind, key_of(kind, taken)) == ()

    @every_bounded_kind
    def test_a_write_that_does_not_fit_writes_nothing(self, counters, kind):
        fill(counters, kind)
        other = PAIR if kind is WINDOW else WINDOW
        with pytest.raises(CountersFull):
            counters.write(
                [
                    (kind, key_of(kind, 0), (-1,)),
                    (other, key_of(other, "other"), (1,)),
                    (RECENT, key_of(RECENT, "recent"), (1,)),
                    (kind, key_of(kind, "too many"), (1,)),
                ]
            )
        assert counters.read(kind, key_of(kind, 0)) == (0,)
        assert counters.read(other, key_of(other, "other")) == ()
        assert counters.read(RECENT, key_of(RECENT, "recent")) == ()

    def test_pairs_fit_up_to_the_limit(self, counters):
        assert fill(counters, PAIR) == MAX_COUNTERS

    def test_one_new_key_named_twice_needs_one_place(self, counters):
        keys = [key_of(PAIR, n) for n in range(MAX_COUNTERS - 1)]
        counters.write([(PAIR, key, (0,)) for key in keys])
        last = key_of(PAIR, "last")
        counters.write([(PAIR, last, (1,)), (PAIR, last, (2,))])
        assert counters.read(PAIR, last) == (2,)

    def test_the_least_recently_written_recent_key_goes_first(self, counters):
        keys = [key_of(RECENT, n) for n in range(MAX_RECENT_KEYS + 3)]
        for number, key in enumerate(keys[:MAX_RECENT_KEYS]):
            counters.write([(RECENT, key, (number,))])
        assert counters.read(RECENT, keys[0]) == (0,)
        counters.write([(RECENT, keys[1], (-1,))])
        for key in keys[MAX_RECENT_KEYS:]:
            counters.write([(RECENT, key, (9,))])
        gone = [n for n, key in enumerate(keys) if counters.read(RECENT, key) == ()]
        # Reading 0 did not save it; writing 1 did.
        assert gone == [0, 2, 3]

    def test_an_evicted_key_can_come_back(self, counters):
        keys = [key_of(RECENT, n) for n in range(2 * MAX_RECENT_KEYS)]
        counters.write([(RECENT, key, tuple(range(20))) for key in keys])
        assert counters.read(RECENT, keys[0]) == ()
        counters.write([(RECENT, keys[0], (5,))])
        assert counters.read(RECENT, keys[0]) == (5,)
        assert counters.read(RECENT, keys[MAX_RECENT_KEYS]) == ()
        assert counters.read(RECENT, keys[MAX_RECENT_KEYS + 1]) == tuple(range(20))

    def test_an_update_may_evict_a_key_that_the_same_write_updates_next(self, counters):
        keys = [key_of(RECENT, n) for n in range(MAX_RECENT_KEYS)]
        counters.write([(RECENT, key, (1,)) for key in keys])
        new = key_of(RECENT, "new")
        counters.write([(RECENT, new, (2,)), (RECENT, keys[0], (3,))])
        assert counters.read(RECENT, new) == (2,)
        assert counters.read(RECENT, keys[0]) == (3,)
        assert counters.read(RECENT, keys[1]) == ()
