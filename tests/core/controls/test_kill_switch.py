"""Stops as one process knows them: which calls they cover, and when the files are read."""

import os

import pytest

from subluminal.core.controls import kill_switch
from subluminal.core.controls.kill_switch import KillSwitch
from subluminal.core.controls.stops import (
    announce,
    hard_stop,
    lift_stop,
    set_stop,
    stop_of_run,
    stopped_runs,
    stops,
    why_stopped,
)


@pytest.fixture
def state_dir(tmp_path):
    return str(tmp_path / "state")


@pytest.fixture
def switch(state_dir):
    made = KillSwitch(state_dir)
    yield made
    made.close()


def stop(state_dir, scope, target="", **more):
    return set_stop(state_dir, scope, target, **{"by": "kim", "reason": "", "hard": False, **more})


def found(view, server="git", tool="push"):
    """Does what a call does: asks only if the number moved, or something was stopped."""
    return view.find(server, tool) if view.words[0] != view.calm else None


@pytest.mark.parametrize(
    ("scope", "target", "holds"),
    [
        ("all", "", True),
        ("run", "r/1", True),
        ("run", "r/2", False),
        ("agent", "fixer", True),
        ("agent", "other", False),
        ("tool", "git/push", True),
        ("tool", "git/*", True),
        ("tool", "*/push", True),
        ("tool", "git/pull", False),
        ("tool", "hg/push", False),
    ],
)
def test_a_stop_holds_for_what_it_names(state_dir, switch, scope, target, holds):
    view = switch.view("r/1", "fixer")
    assert found(view) is None
    made = stop(state_dir, scope, target)
    assert found(view) == (made if holds else None)
    assert lift_stop(state_dir, scope, target) == made
    assert found(view) is None
    assert lift_stop(state_dir, scope, target) is None


def test_a_calm_run_reads_nothing(state_dir, switch, monkeypatch):
    view = switch.view("r", "a")
    found(view)
    stop(state_dir, "run", "another")
    found(view)
    monkeypatch.setattr(kill_switch, "read_stops", lambda _: pytest.fail("read"))
    assert found(view) is None
    assert view.words[0] == view.calm


def test_two_runs_of_one_process_have_their_own_stops(state_dir, switch):
    one, two = switch.view("one", "a"), switch.view("two", "a")
    stop(state_dir, "run", "one")
    assert found(one).target == "one"
    assert found(two) is None
    assert found(one).target == "one"


def test_a_stop_of_the_same_thing_replaces_the_one_before_and_stays_hard(state_dir):
    stop(state_dir, "agent", "a", hard=True, reason="first")
    stop(state_dir, "agent", "a", reason="second")
    (found_one,) = stops(state_dir)
    assert (found_one.reason, found_one.hard) == ("second", True)


def test_without_the_number_each_call_reads_the_directory(state_dir):
    os.makedirs(os.path.join(state_dir, "kill", "generation"))
    switch = KillSwitch(state_dir)
    view = switch.view("r", "a")
    assert found(view) is None
    os.rmdir(os.path.join(state_dir, "kill", "generation"))
    made = stop(state_dir, "run", "r")
    assert found(view) == made
    switch.close()


def test_a_number_that_was_removed_is_found_again_by_a_check(state_dir, switch):
    view = switch.view("r", "a")
    found(view)
    os.unlink(os.path.join(state_dir, "kill", "generation"))
    made = stop(state_dir, "all")
    assert found(view) is None, "nobody told it yet"
    switch.check()
    assert found(view) == made
    lift_stop(state_dir, "all", "")
    assert found(view) is None
    assert view.words[0] == view.calm


@pytest.mark.parametrize("name", ["run-r", "tool-git%2f.push", "all", "agent-a", "rubbish"])
def test_what_cannot_be_believed_stops_what_it_is_called_after(state_dir, switch, name):
    path = os.path.join(state_dir, "kill", name)
    with open(path, "wb") as file:
        file.write(b"not ours")
    announce(state_dir)
    told = found(switch.view("r", "a"))
    assert "edited" in told.problem
    other = found(switch.view("other", "b"), tool="pull")
    assert (other is not None) == (name in ("all", "rubbish"))


@pytest.mark.parametrize(
    ("scope", "target"), [("run", "r.aside"), ("agent", "a/aside"), ("tool", "git/aside")]
)
def test_a_stop_whose_name_looks_like_a_file_that_is_being_written(
    state_dir, switch, scope, target
):
    """An agent may choose such a name; it must not escape the kill switch."""
    made = stop(state_dir, scope, target)
    assert stops(state_dir) == [made]
    assert found(switch.view("r.aside", "a/aside"), tool="aside") == made
    assert stopped_runs(state_dir) == (["r%2e.aside"] if scope == "run" else [])


def test_a_file_that_is_being_written_is_not_a_stop(state_dir, switch):
    with open(os.path.join(state_dir, "kill", "all.123.aside"), "wb") as file:
        file.write(b"half")
    announce(state_dir)
    assert found(switch.view("r", "a")) is None


def test_a_stop_that_says_something_else_than_its_name_stops_what_it_says(state_dir, switch):
    """Renaming a stop does not move it to someone else."""
    stop(state_dir, "run", "r")
    directory = os.path.join(state_dir, "kill")
    os.rename(os.path.join(directory, "run-r"), os.path.join(directory, "run-other"))
    announce(state_dir)
    assert found(switch.view("r", "a")).target == "r"
    assert found(switch.view("other", "a")) is None


def test_if_the_stops_cannot_be_read_everything_is_stopped(state_dir, monkeypatch):
    assert not why_stopped(state_dir, "r", "a")
    stop(state_dir, "agent", "a")
    assert stop_of_run(state_dir, "r", "a").scope == "agent"
    assert not why_stopped(state_dir, "r", "b")

    def denied(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", denied)
    assert why_stopped(state_dir, "r", "b")
    switch = KillSwitch(state_dir)
    assert "permission denied" in found(switch.view("r", "b")).problem
    switch.close()


def test_where_there_is_no_home_nothing_is_stopped(tmp_path):
    """`decision_on_error` and the policy say what happens there, not the kill switch."""
    (tmp_path / "home").write_text("not a directory")
    switch = KillSwitch(str(tmp_path / "home" / "state"))
    assert found(switch.view("r", "a")) is None
    assert stops(str(tmp_path / "home" / "state")) == []


def test_servers_are_stopped_by_hard_stops_only(state_dir, switch):
    view = switch.view("r", "a")
    stop(state_dir, "run", "r")
    assert hard_stop(state_dir, "r", "a", "git") is None
    found(view)
    assert view.stops_server("git") is None
    made = stop(state_dir, "tool", "git/push", hard=True)
    assert hard_stop(state_dir, "r", "a", "git") == made
    assert hard_stop(state_dir, "r", "a", "hg") is None
    found(view)
    assert view.stops_server("git") == made
    whole = stop(state_dir, "run", "r", hard=True)
    found(view)
    assert view.stops_server("hg") == whole == hard_stop(state_dir, "r", "a", "hg")


def test_a_slower_thread_that_read_fewer_stops_hides_none(state_dir, switch, monkeypatch):
    """It has read the directory when another thread learns of a newer stop, and stores its list last."""
    slow, other = switch.view("slow", "a"), switch.view("stopped", "a")
    found(slow)
    found(other)
    stop(state_dir, "run", "unconcerned")
    read = kill_switch.read_stops

    def read_and_be_overtaken(directory):
        stops = read(directory)
        monkeypatch.undo()
        stop(state_dir, "run", "stopped")
        assert found(other) is not None
        return stops

    monkeypatch.setattr(kill_switch, "read_stops", read_and_be_overtaken)
    assert found(slow) is None
    for _ in range(2):
        assert other.words[0] != other.calm
        assert found(other) is not None
