"""`sub taint`: shows the level of a run, and sets it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.test_taint import SEND, WEB, events, make, policy
from tests.hosts import host_in
from tests.requirements import requirement

from subluminal.config.places import places
from subluminal.state import layout
from subluminal.state.run_state import RunState


@pytest.fixture
def run(own_home: Path) -> Any:
    host = host_in(own_home, policy(WEB, SEND))
    make(host, "mail", "send")
    yield host
    host.close()


def test_a_new_run_is_system(sub: Any, run: Any) -> None:
    assert sub("taint", "show", "run-1").out == "run `run-1` is SYSTEM since its start\n"
    assert json.loads(sub("taint", "show", "run-1", "--json").out) == {
        "run_id": "run-1",
        "taint": "SYSTEM",
        "since_seq": 0,
        "source": None,
    }


def test_the_level_and_what_lowered_it(sub: Any, run: Any) -> None:
    make(run, "web", "fetch")
    told = sub("taint", "show", "run").out
    assert told == "run `run-1` is UNTRUSTED since call 2 (web/fetch)\n"


def test_a_person_sets_it(sub: Any, run: Any, own_home: Path) -> None:
    make(run, "web", "fetch")
    words = ("taint", "set", "run-1", "TRUSTED", "--reason", "I read it", "--json")
    assert json.loads(sub(*words).out) == {
        "run_id": "run-1",
        "taint": "TRUSTED",
        "since_seq": 2,
        "source": "sub taint set: I read it",
        "before": "UNTRUSTED",
    }
    change = [each["taint"] for each in events(own_home, "taint_changed")][-1]
    assert change == {
        "from": "UNTRUSTED",
        "to": "TRUSTED",
        "seq": 2,
        "by": "command",
        "reason": "I read it",
    }
    assert make(run, "mail", "send") == "ALLOW"


def test_a_person_sets_it_back_to_the_top(sub: Any, run: Any) -> None:
    make(run, "web", "fetch")
    told = sub("taint", "set", "run-1", "SYSTEM").out
    assert told == "run `run-1` is SYSTEM since call 2 (sub taint set); it was UNTRUSTED\n"


@requirement("taint:person")
def test_an_agent_may_lower_and_not_raise(
    sub: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUB_RUN_ID", "run-1")
    assert sub("taint", "set", "run-1", "TRUSTED").code == 0
    refused = sub("taint", "set", "run-1", "SYSTEM")
    assert refused.code == 2
    assert "is for a person to run" in refused.err
    assert sub("taint", "set", "run-1", "UNTRUSTED").code == 0
    assert make(run, "mail", "send") == "BLOCK"


def test_a_level_is_set_to_what_it_is(sub: Any, run: Any, own_home: Path) -> None:
    told = sub("taint", "set", "run-1", "SYSTEM").out
    assert told == "run `run-1` is SYSTEM since its start; nothing has changed\n"
    assert not list(events(own_home, "taint_changed"))


def test_a_run_that_does_not_exist(sub: Any, own_home: Path) -> None:
    for words in (("show", "nobody"), ("set", "nobody", "TRUSTED")):
        refused = sub("taint", *words)
        assert refused.code == 2
        assert "there is no run `nobody`" in refused.err


def test_a_state_that_cannot_be_read(sub: Any, run: Any, own_home: Path) -> None:
    state = places({"SUB_HOME": str(own_home)}).state
    (path,) = (Path(state) / "runs").iterdir()
    path.write_bytes(b"rubbish")
    for words in (("show", "run-1"), ("set", "run-1", "TRUSTED")):
        refused = sub("taint", *words)
        assert refused.code == 2
        assert "the level of run `run-1` is not known" in refused.err


@requirement("taint:damaged")
def test_a_damaged_level_is_shown_as_the_lowest(sub: Any, run: Any, own_home: Path) -> None:
    state_dir = places({"SUB_HOME": str(own_home)}).state
    with RunState.open(state_dir, "run-1", threads=True) as state, state.locked():
        state._words[layout.W_TAINT] = -1
    told = sub("taint", "show", "run-1").out
    assert told == ("run `run-1` is UNTRUSTED since call 1 (the record of its level was damaged)\n")


def test_the_level_is_shown_and_found_in_the_ledger(sub: Any, run: Any) -> None:
    """`sub show` tells what the calls of a run met, `sub query` finds them."""
    make(run, "web", "fetch")
    make(run, "mail", "send")
    run.close()
    assert "taint     SYSTEM, UNTRUSTED from call 3\n" in sub("show", "run-1").out
    found = json.loads(sub("query", "calls", "--taint", "UNTRUSTED", "--json").out)
    assert (found["seq"], found["taint"]) == (3, "UNTRUSTED")
    assert "taint       UNTRUSTED  level of the run" in sub("show", found["call_id"]).out
    refused = sub("query", "calls", "--taint", "LOW")
    assert refused.code == 2
    assert "unknown taint `LOW`" in refused.err
