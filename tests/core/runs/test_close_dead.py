"""Runs that dead processes left open are closed, those of living ones are not."""

import os
import subprocess

import pytest

from subluminal.config.places import Places
from subluminal.contracts.identity import Identity, Source
from subluminal.core.runs.abandoned import close_dead
from subluminal.core.runs.attendance import Attendance, attending, note_attendance
from subluminal.state.processes import start_time
from subluminal.state.run_state import RunState


@pytest.fixture
def places(tmp_path):
    return Places(str(tmp_path), str(tmp_path / "run"))


def attend(places, run_id, pid, start):
    source = Source(host_id="h", proc_id="p", shim_id=f"shim-{pid}")
    with RunState.open(places.state, run_id) as state, state.locked():
        state.claim_start(1, 1)
        state.attach(source.shim_id, pid, start)
    note_attendance(places, pid, Attendance(run_id, Identity(), source))


def ended(places, run_id):
    with RunState.open(places.state, run_id) as state:
        return state.ended()


def dead_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_the_dead_are_closed_once(places):
    attend(places, "a", dead_pid(), 1)
    assert close_dead(places) == 1
    assert ended(places, "a")
    assert attending(places) == []
    assert close_dead(places) == 0


def test_the_living_are_not(places):
    attend(places, "a", os.getpid(), start_time(os.getpid()))
    assert close_dead(places) == 0
    assert not ended(places, "a")
    assert attending(places) == [os.getpid()]


def test_one_that_lives_but_could_not_enter_is_not_declared_dead(places):
    attend(places, "a", os.getpid(), start_time(os.getpid()) - 1)
    assert close_dead(places) == 0
    assert attending(places) == [os.getpid()]


def test_a_later_process_with_the_same_pid_is_not_the_dead_one(places):
    attend(places, "a", os.getpid(), start_time(os.getpid()) - 1)
    os.utime(os.path.join(places.state, "processes", str(os.getpid())), (1, 1))
    assert close_dead(places) == 1
    assert ended(places, "a")


def test_the_living_end_what_they_share_with_the_dead(places):
    attend(places, "a", dead_pid(), 1)
    attend(places, "a", os.getpid(), start_time(os.getpid()))
    assert close_dead(places) == 0
    assert not ended(places, "a")
