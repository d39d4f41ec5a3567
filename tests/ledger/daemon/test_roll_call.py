"""ledgerd closes runs whose processes were killed, and removes the state of old runs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ledger.home import Home
from tests.ledger.process import Ledgerd, wait_until
from tests.processes import kill_with_warden
from tests.shim.household import Household

from subluminal.core.runs.attendance import attending
from subluminal.ledger.daemon.roll_call import RollCall

Start = Callable[..., Ledgerd]


def killed_with_its_warden(household: Household, run: str) -> None:
    """Leaves a call in flight."""
    before = len(household.executed())
    shim = household.start(run=run).ready()
    shim.ask("hang")
    wait_until(lambda: len(household.executed()) > before, "the call to arrive")
    kill_with_warden(shim.pid)
    shim.process.wait()


def ended(daemon: Ledgerd, run: str) -> bool:
    found = daemon.client.get(f"/v1/runs/{run}")
    return found is not None and found["status"] == "FAILED"


def test_before_and_while_it_runs(home: Home, household: Household, ledgerd: Start) -> None:
    killed_with_its_warden(household, "before")
    daemon = ledgerd().ready()
    lives = household.start(run="lives").ready()
    assert lives.code() == 0
    killed_with_its_warden(household, "while")
    for run in ("before", "while"):
        wait_until(lambda run=run: ended(daemon, run), f"the end of `{run}`")
        (call,) = daemon.client.get("/v1/calls", {"run": run})["calls"]
        assert (call["status"], call["error_class"]) == ("ERROR", "unknown")
        assert daemon.client.get("/v1/calls", {"run": run, "status": "UNKNOWN"})["calls"] == [call]
    assert len(household.events("run_end")) == 2
    assert attending(home.places) == [lives.pid]
    assert lives.code() == 0
    lives.close()
    wait_until(lambda: daemon.client.get("/v1/runs/lives")["status"] == "SUCCEEDED")
    assert daemon.stop() == 0


def test_the_warden_comes_first(home: Home, household: Household) -> None:
    killed_with_its_warden(household, "run")
    roll_call = RollCall(home.places)
    roll_call.look()
    assert household.events("run_end") == []
    roll_call.look()
    assert household.status("run") == "FAILED"
    roll_call.look()
    assert len(household.events("run_end")) == 1


def test_a_home_that_cannot_be_written_is_tried_again(
    home: Home, household: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_with_its_warden(household, "run")
    roll_call = RollCall(home.places)
    roll_call.look()

    def refuse(*_: object) -> int:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr("subluminal.ledger.daemon.roll_call.close_one", refuse)
        roll_call.look()
    roll_call.look()
    assert household.status("run") == "FAILED"


def test_a_running_ledgerd_clears_away_what_is_long_over(home: Home, ledgerd: Start) -> None:
    old = Path(home.places.state) / "pins" / "over"
    old.parent.mkdir(parents=True)
    old.write_text("x")
    os.utime(old, (0, 0))
    daemon = ledgerd().ready()
    wait_until(lambda: not old.exists(), "the pin of a run that is over")
    assert daemon.stop() == 0
