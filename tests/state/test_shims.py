"""Only living shims count."""

import os
import signal

import pytest

from subluminal.state import layout
from subluminal.state.errors import StateUnusable
from subluminal.state.processes import start_time
from subluminal.state.shims import Shim, ShimTable
from subluminal.system import LINUX

OWN = os.getpid(), start_time(os.getpid())


def test_a_killed_shim_no_longer_counts_even_before_it_is_reaped(state, start):
    workers = [start("attach") for _ in range(3)]
    for worker in workers:
        assert worker.hear() == "ready"
    assert {shim.pid for shim in state.live_shims()} == {worker.pid for worker in workers}
    workers[0].signal(signal.SIGKILL)
    os.waitid(os.P_PID, workers[0].pid, os.WEXITED | os.WNOWAIT)
    if not LINUX:
        workers[0].process.wait()  # a zombie cannot be told from a living process without `ps`
    assert {shim.pid for shim in state.live_shims()} == {workers[1].pid, workers[2].pid}
    with state.locked():
        assert state.detach(f"shim-{workers[1].pid}") == 1
        assert state.detach("never attached") == 1


def test_a_later_process_with_the_same_pid_is_not_the_shim(state):
    with state.locked():
        state.attach("old", OWN[0], OWN[1] - 1)
        assert state.live_shims() == ()
        state.attach("new", *OWN)
        assert state.live_shims() == (Shim("new", *OWN),)


def test_a_shim_that_attaches_twice_counts_once(state):
    with state.locked():
        state.attach("one", *OWN)
        state.attach("one", *OWN)
        assert len(state.live_shims()) == 1


def test_256_shims_fit_and_the_dead_make_room(state):
    with state.locked():
        for number in range(layout.MAX_SHIMS - 1):
            state.attach(f"shim-{number}", *OWN)
        state.attach("dead", OWN[0], OWN[1] + 1)
        state.attach("last", *OWN)
        assert len(state.live_shims()) == 256
        with pytest.raises(StateUnusable, match="256 shims already use it"):
            state.attach("one more", *OWN)


@pytest.mark.parametrize("shim_id", ["", "x" * 105, "a\0b"], ids=["empty", "long", "NUL"])
def test_an_id_that_does_not_fit_is_a_bug(state, shim_id):
    with state.locked(), pytest.raises(ValueError, match="a shim id has"):
        state.attach(shim_id, *OWN)


def test_the_longest_id_fits_beside_its_neighbour(state):
    ids = {"x" * 104, "y" * 104}
    with state.locked():
        for shim_id in sorted(ids):
            state.attach(shim_id, *OWN)
    assert {shim.shim_id for shim in state.live_shims()} == ids


def counts(state):
    return ShimTable(state._file).written()


def count(state, shim_id, events):
    word, base, _ = state.counter(shim_id)
    word[0] = base + events
    word.release()


def test_a_shims_count_stays_when_it_detaches(state):
    with state.locked():
        for name in ("one", "two"):
            state.attach(name, *OWN)
    assert counts(state) == {}
    count(state, "one", 7)
    count(state, "two", 9)
    with state.locked():
        state.detach("one")
        state.attach("three", *OWN)
        state.attach("two", *OWN)
    assert counts(state) == {"one": 7}, "a shim that attaches again counts again"
    assert state.counter("never attached") is None


def test_the_counts_of_the_earliest_shims_make_room(state):
    with state.locked():
        for number in range(layout.MAX_SHIMS):
            state.attach(f"shim-{number}", *OWN)
            count(state, f"shim-{number}", number + 1)
            state.detach(f"shim-{number}")
        assert len(counts(state)) == layout.MAX_SHIMS
        state.attach("late", *OWN)
        count(state, "late", 1)
    found = counts(state)
    assert len(found) == layout.MAX_SHIMS
    assert found["late"] == 1


def test_a_count_is_never_taken_for_that_of_another_shim(state):
    """A process of an early version takes a slot, and knows nothing of counts."""
    with state.locked():
        state.attach("new", *OWN)
        count(state, "new", 7)
        state.detach("new")
    start = ShimTable._id_start(0)
    state._file.data[start : start + 3] = b"old"
    assert counts(state) == {}


def test_counts_lie_in_room_that_no_table_uses():
    shapes = [place.shape for place in layout.TABLES]
    ends = [
        place.stamps + (shape.capacity if shape.evicts else 0)
        for place, shape in zip(layout.TABLES, shapes, strict=True)
    ]
    assert max(ends) <= layout.SHIM_EVENTS
    assert layout.SHIM_EVENTS + layout.MAX_SHIMS == layout.ALWAYS_BACKED_WORDS
    assert min(place.slots for place in layout.TABLES) >= layout.ALWAYS_BACKED_WORDS
