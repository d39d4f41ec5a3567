"""Only living shims count."""

import os
import signal

import pytest

from subluminal.state import layout
from subluminal.state.errors import StateUnusable
from subluminal.state.processes import start_time
from subluminal.state.shims import Shim

OWN = os.getpid(), start_time(os.getpid())


def test_a_killed_shim_no_longer_counts_even_before_it_is_reaped(state, start):
    workers = [start("attach") for _ in range(3)]
    for worker in workers:
        assert worker.hear() == "ready"
    assert {shim.pid for shim in state.live_shims()} == {worker.pid for worker in workers}
    workers[0].signal(signal.SIGKILL)
    os.waitid(os.P_PID, workers[0].pid, os.WEXITED | os.WNOWAIT)
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
