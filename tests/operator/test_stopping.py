"""The kill switch as a service: plain values in, plain values out."""

import pytest

from subluminal.config.places import places
from subluminal.core.controls.stops import stops
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.stopping import Target, find_target, revive, stop


@pytest.fixture
def where(own_home):
    return places({"SUB_HOME": str(own_home)})


def target(where, *, run=None, agent=None, tool=None, everything=False):
    return find_target(where, run=run, agent=agent, tool=tool, everything=everything)


@pytest.mark.parametrize(
    ("names", "expected", "words"),
    [
        ({"agent": "fixer"}, Target("agent", "fixer"), "--agent fixer"),
        ({"tool": "git/*"}, Target("tool", "git/*"), "--tool git/*"),
        ({"everything": True}, Target("all", ""), "--all"),
    ],
)
def test_one_target_is_named(where, names, expected, words):
    found = target(where, **names)
    assert (found, found.words) == (expected, words)


@pytest.mark.parametrize(
    "names",
    [{}, {"agent": "a", "everything": True}, {"agent": ""}, {"tool": "git"}, {"tool": "/x"}],
)
def test_none_several_and_bad_names_are_refused(where, names):
    with pytest.raises(UsageError):
        target(where, **names)


def test_an_unknown_run_is_refused(where):
    with pytest.raises(SubluminalError, match="there is no run `nobody`"):
        target(where, run="nobody")


def test_a_stop_is_set_and_lifted(where):
    agent = Target("agent", "fixer")
    done = stop(where, agent, reason="it loops")
    assert (done.stop.reason, done.runs, done.is_recorded) == ("it loops", [], True)
    assert [each.target for each in stops(where.state)] == ["fixer"]
    lifted = revive(where, agent, reason="mended")
    assert (lifted.stop.target, lifted.stop.reason) == ("fixer", "mended")
    assert stops(where.state) == []
    with pytest.raises(SubluminalError, match="agent `fixer` is not stopped"):
        revive(where, agent)


def test_a_home_that_cannot_be_written_is_told(where, own_home):
    own_home.mkdir()
    (own_home / "state").write_text("")
    with pytest.raises(SubluminalError, match="cannot stop everything: "):
        stop(where, Target("all", ""))
