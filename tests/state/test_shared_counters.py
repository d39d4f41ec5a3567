"""The shared counters pass the tests of all counters, and those of sharing and of kills."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.counters_suite import (
    MAX_INTS,
    PAIR,
    RECENT,
    TABLES,
    WINDOW,
    CountersSuite,
    fill,
    key_of,
)
from tests.state.mortal import Killed, Mortal, MortalBytes

from subluminal.contracts.counters import WINDOW_INTS, CountersFull
from subluminal.contracts.limits import MAX_COUNTERS, MAX_RECENT_KEYS
from subluminal.state import layout
from subluminal.state.run_state import RunState
from subluminal.state.shared_counters import SharedCounters
from subluminal.state.storage import open_or_create
from subluminal.state.taint import TaintWord


@pytest.fixture
def state(tmp_path):
    with RunState.open(str(tmp_path), "run") as state:
        yield state


class TestSharedCounters(CountersSuite):
    @pytest.fixture
    def make_counters(self, state):
        with state.locked():
            yield lambda: state.counters


def test_windows_fit_up_to_their_own_limit(state):
    with state.locked():
        assert fill(state.counters, WINDOW) == layout.MAX_WINDOWS


def test_tables_are_laid_out_in_the_order_of_the_kinds():
    shapes = [place.shape for place in layout.TABLES]
    assert shapes[PAIR].capacity == MAX_COUNTERS
    assert shapes[WINDOW].capacity == layout.MAX_WINDOWS
    assert shapes[RECENT].capacity == MAX_RECENT_KEYS
    assert [shape.max_ints for shape in shapes] == [MAX_INTS[kind] for kind in TABLES]


def test_writing_outside_of_the_lock_is_a_bug(state):
    with pytest.raises(RuntimeError, match="only under its lock"):
        state.counters.write([(PAIR, key_of(PAIR, 1), (1,))])


@pytest.mark.parametrize(
    "update",
    [
        (PAIR, key_of(PAIR, 2), (1, 2, 3)),
        (RECENT, key_of(RECENT, 2), (0,) * (WINDOW_INTS + 1)),
        (PAIR, key_of(RECENT, 2), (1,)),
        (RECENT, key_of(PAIR, 2), (1,)),
        (PAIR, key_of(PAIR, 2), (2**63,)),
    ],
    ids=["pair too long", "recent too long", "key too long", "key too short", "number too large"],
)
def test_an_impossible_update_writes_nothing(state, update):
    first = (PAIR, key_of(PAIR, 1), (1,))
    with state.locked():
        with pytest.raises(Exception, match=r"a (key|cell) of this kind|argument|format requires"):
            state.counters.write([first, update])
        assert state.counters.read(PAIR, first[1]) == ()


def test_what_one_handle_writes_another_reads_evictions_included(tmp_path, state):
    with RunState.open(str(tmp_path), "run") as other, state.locked():
        pair, old = key_of(PAIR, 1), key_of(RECENT, "old")
        assert other.counters.read(PAIR, pair) == ()
        state.counters.write([(PAIR, pair, (1,)), (RECENT, old, (1,))])
        assert other.counters.read(PAIR, pair) == (1,)
        assert other.counters.read(RECENT, old) == (1,)
        for number in range(MAX_RECENT_KEYS):
            state.counters.write([(RECENT, key_of(RECENT, number), (number,))])
        assert other.counters.read(RECENT, old) == ()


def test_cells_outlive_the_processes_that_wrote_them(tmp_path):
    long = tuple(range(WINDOW_INTS))
    with RunState.open(str(tmp_path), "run") as state, state.locked():
        state.counters.write([(WINDOW, key_of(WINDOW, 1), long)])
    with RunState.open(str(tmp_path), "run") as state:
        assert state.counters.read(WINDOW, key_of(WINDOW, 1)) == long


def test_keys_that_share_a_bucket_do_not_mix(state):
    keys = [b"same" + bytes([n]) * 12 for n in range(50)]
    with state.locked():
        for number, key in enumerate(keys):
            state.counters.write([(PAIR, key, (number,))])
    assert [state.counters.read(PAIR, key) for key in keys] == [(n,) for n in range(50)]


numbers = st.integers(-(2**63), 2**63 - 1)
updates = st.sampled_from(TABLES).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.integers(0, 9).map(lambda name: key_of(kind, name)),
        st.lists(numbers, max_size=MAX_INTS[kind]).map(tuple),
    )
)


@settings(max_examples=60, deadline=None)
@given(writes=st.lists(st.tuples(st.booleans(), st.lists(updates, max_size=5)), max_size=20))
def test_two_handles_on_one_run_behave_as_one_dict(tmp_path_factory, writes):
    state_dir, model = str(tmp_path_factory.mktemp("state")), {}
    with RunState.open(state_dir, "run") as one, RunState.open(state_dir, "run") as two:
        for first, batch in writes:
            writer, reader = (one, two) if first else (two, one)
            with writer.locked():
                writer.counters.write(batch)
            model.update({(kind, key): cell for kind, key, cell in batch})
            for (kind, key), cell in model.items():
                assert reader.counters.read(kind, key) == cell


def test_a_full_store_says_how_full(state):
    with state.locked():
        fill(state.counters, WINDOW)
        with pytest.raises(CountersFull, match="1024 counters of this kind"):
            state.counters.write([(WINDOW, key_of(WINDOW, "more"), ())])


BEFORE = [(PAIR, key_of(PAIR, n), (n, ~n)) for n in range(3)] + [
    (RECENT, key_of(RECENT, n), (n,)) for n in range(2)
]
BATCH = [
    (PAIR, key_of(PAIR, 0), (10, 11)),
    (RECENT, key_of(RECENT, 0), (12,)),
    (PAIR, key_of(PAIR, 1), (13, 14)),
    (RECENT, key_of(RECENT, "new"), (15,)),
    (PAIR, key_of(PAIR, 0), (16, 17)),
]


def test_a_kill_at_any_store_of_a_batch_tears_no_cell(tmp_path):
    """After a kill each cell is the old or the new one, and the batch can be written again."""
    seen = set()
    for stores in range(100):
        with RunState.open(str(tmp_path), f"run-{stores}") as state, state.locked():
            life = {"stores": 10**9}
            file = open_or_create(str(tmp_path), f"run-{stores}")
            file.words, file.data = Mortal(file.words, life), MortalBytes(file.data, life)
            counters = SharedCounters(file, state.locked(), TaintWord(file))
            counters.write(BEFORE)
            counters.write(BEFORE)  # remembers the slots of the pairs, as a read would
            life["stores"] = stores
            try:
                counters.write(BATCH)
                done = True
            except Killed:
                done = False
            old = {(kind, key): cell for kind, key, cell in BEFORE}
            new = {(kind, key): cell for kind, key, cell in BATCH}
            for kind, key in old | new:
                cell = state.counters.read(kind, key)
                allowed = {old.get((kind, key), ()), new.get((kind, key), old.get((kind, key)))}
                assert cell in allowed
                seen.add(cell)
            state.counters.write(BATCH)
            assert all(state.counters.read(*where) == cell for where, cell in new.items())
        if done:
            break
    assert stores > len(BATCH)
    assert seen >= {(0, ~0), (16, 17), (1, ~1), (13, 14), (0,), (12,), (), (15,)}


def test_a_batch_with_a_bug_in_it_writes_nothing_even_of_pairs_that_are_known(state):
    with state.locked():
        state.counters.write(BEFORE)
        for wrong in [(0, 2**63), (0, 1, 2), (0, None)]:
            with pytest.raises((ValueError, TypeError, struct.error)):
                state.counters.write([*BATCH, (PAIR, key_of(PAIR, 2), wrong)])
            assert [state.counters.read(kind, key) for kind, key, _ in BEFORE] == [
                cell for _, _, cell in BEFORE
            ]
            assert state.counters.read(RECENT, key_of(RECENT, "new")) == ()
