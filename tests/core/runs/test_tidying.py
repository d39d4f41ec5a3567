"""Old files of every kind are removed; files that are used stay."""

import os
import time
from pathlib import Path

import pytest

from subluminal.config.places import places
from subluminal.core.runs.tidying import KEEP_MS, tidy
from subluminal.state.run_state import RunState
from subluminal.state.storage import state_path

OLD_S = time.time() - KEEP_MS / 1000 - 60


@pytest.fixture
def home(tmp_path):
    return places({}, str(tmp_path / "home"))


def make(path: Path, *, old: bool) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    if old:
        os.utime(path, (OLD_S, OLD_S))
    return path


def test_an_empty_home_is_tidy(home):
    tidy(home)
    assert not Path(home.state).exists()


def test_what_belongs_to_a_run_goes_with_it(home):
    with RunState.open(home.state, "living"):
        pass
    state = Path(home.state)
    kept = make(state / "pins" / "living", old=True)
    young = make(state / "pins" / "new", old=False)
    gone = make(state / "pins" / "gone", old=True)
    approval = make(state / "approvals" / "gone" / "a.request", old=True)
    os.utime(approval.parent, (OLD_S, OLD_S))
    tidy(home)
    assert kept.exists()
    assert young.exists()
    assert not gone.exists()
    assert not approval.parent.exists()
    assert os.path.exists(state_path(home.state, "living"))


def test_unused_policies_are_removed(home):
    used = make(Path(home.cache) / "policies" / "used.json", old=False)
    unused = make(Path(home.cache) / "policies" / "unused.json", old=True)
    tidy(home)
    assert used.exists()
    assert not unused.exists()


def test_a_run_that_is_long_over_loses_its_state(home):
    with RunState.open(home.state, "over"):
        pass
    tidy(home, keep_ms=-60_000)
    assert not os.path.exists(state_path(home.state, "over"))


def test_a_link_is_removed_and_not_followed(home, tmp_path):
    elsewhere = make(tmp_path / "elsewhere" / "file", old=True)
    link = Path(home.state) / "pins" / "link"
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere.parent)
    os.utime(link, (OLD_S, OLD_S), follow_symlinks=False)
    tidy(home)
    assert not link.is_symlink()
    assert elsewhere.exists()
