"""Only runs that are not in use and were not used for long are removed."""

import os
import signal

import pytest

from subluminal.state import layout
from subluminal.state.pruning import prune
from subluminal.state.run_state import RunState
from subluminal.state.storage import open_or_create, state_path

DAY_MS = 86_400_000


def age(path, days):
    """Makes a run look unused for `days`."""
    file_time = os.stat(path).st_mtime - days * 86_400
    with open(path, "r+b") as file:
        file.seek(layout.W_LAST_USED_MS * layout.WORD_BYTES)
        file.write(int(file_time * 1000).to_bytes(8, "little"))
    os.utime(path, (file_time, file_time))


@pytest.fixture
def path(state_dir):
    open_or_create(state_dir, "run").close()
    return state_path(state_dir, "run")


def test_nothing_to_prune_is_fine(state_dir):
    assert prune(state_dir, 0) == 0


def test_old_runs_go_and_younger_ones_stay(state_dir, path):
    age(path, days=8)
    with RunState.open(state_dir, "young"):
        assert prune(state_dir, 7 * DAY_MS) == 1
    assert os.listdir(os.path.dirname(path)) == ["young"]


@pytest.mark.parametrize("which", ["file time", "word"])
def test_either_sign_of_use_keeps_a_run(state_dir, path, which):
    age(path, days=8)
    if which == "file time":
        os.utime(path)
    else:
        RunState.open(state_dir, "run").close()
        os.utime(path, (0, 0))
    assert prune(state_dir, 7 * DAY_MS) == 0


def test_a_run_with_a_living_shim_stays_and_goes_when_it_is_dead(state_dir, path, start):
    shim = start("attach")
    assert shim.hear() == "ready"
    age(path, days=8)
    assert prune(state_dir, 7 * DAY_MS) == 0
    shim.signal(signal.SIGKILL)
    shim.process.wait()
    assert prune(state_dir, 7 * DAY_MS) == 1


def test_a_run_whose_lock_is_held_stays(state_dir, path, start):
    holder = start("hold")
    assert holder.hear() == "held"
    age(path, days=8)
    assert prune(state_dir, 7 * DAY_MS) == 0
    assert os.path.exists(path)


def test_a_damaged_file_stays(state_dir, path):
    with open(path, "wb") as file:
        file.write(b"not ours")
    os.utime(path, (0, 0))
    assert prune(state_dir, DAY_MS) == 0
    assert os.path.exists(path)


def test_an_unfinished_file_of_a_killed_process_is_removed_after_an_hour(state_dir, path):
    unfinished = os.path.join(os.path.dirname(path), ".123-abc")
    open(unfinished, "wb").close()
    assert prune(state_dir, 0) <= 1
    assert os.path.exists(unfinished)
    os.utime(unfinished, (0, 0))
    assert prune(state_dir, DAY_MS) == 1
    assert not os.path.exists(unfinished)


def test_a_file_that_vanishes_meanwhile_is_not_an_error(state_dir, path, monkeypatch):
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda where: [*real(where), "gone"])
    assert prune(state_dir, DAY_MS) == 0


def test_a_run_that_a_shim_has_attached_to_is_never_removed_under_it(state_dir, start):
    """A shim that opens a stale run marks it as used or makes it again, whenever `prune` runs."""
    shim, removed = start("come_and_go"), 0
    while shim.process.poll() is None:
        removed += prune(state_dir, DAY_MS)
    assert shim.hear() == "kept 300 times"
    assert removed
