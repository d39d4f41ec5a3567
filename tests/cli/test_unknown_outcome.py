"""A shim and its warden die at once, in the middle of a write: what is known of it is found."""

import json
import os
import signal
import subprocess

import pytest
from tests.shim.household import SUB, WITHIN_S, Household, wait_until


@pytest.fixture
def house(tmp_path, own_home, subreaper):
    made = Household(tmp_path, own_home)
    yield made
    sub(made, "ledgerd", "stop")
    made.clean()


def sub(house, *words):
    return subprocess.run(
        [*SUB, *words], env=house.env(), capture_output=True, text=True, timeout=WITHIN_S
    )


def rows(house, *words):
    ran = sub(house, "query", *words, "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_write_that_nobody_saw_the_end_of(house):
    shim = house.start().ready()
    assert shim.code("echo") == 0
    house.wait_event("tool_call_end")
    shim.ask("hang", {"amount": 7})
    wait_until(lambda: len(house.executed()) == 2, "the call to arrive")
    warden = house.warden_of(shim)
    for pid in (warden, shim.pid):
        os.kill(pid, signal.SIGSTOP)  # neither sees the other die
    for pid in (warden, shim.pid):
        os.kill(pid, signal.SIGKILL)
    shim.process.wait(WITHIN_S)
    (call,) = rows(house, "calls", "--status", "UNKNOWN")
    assert (call["tool_name"], call["decision"]) == ("hang", "ALLOW")
    assert (call["status"], call["error_class"]) == ("ERROR", "unknown"), "as the Pack says"
    assert "amount" in call["preview"]["args_preview"]
    (run,) = rows(house, "runs")
    assert (run["status"], run["unknown"], run["errors"], run["calls"]) == ("FAILED", 1, 0, 2)
    died = f"process {shim.pid} died without closing its runs"
    why = f"{died} with 1 call in flight to server `echo`"
    assert house.run_end()["reason"] == run["summary"]["reason"] == why
    assert rows(house, "calls", "--status", "ERROR") == [call]
    assert rows(house, "calls", "--decision", "BLOCK", "--status", "UNKNOWN") == []
    assert rows(house, "calls", "tool:* -status:UNKNOWN")[0]["tool_name"] == "echo"
    for words in (("query", "runs"), ("show", "run-1"), ("tail", "--no-follow")):
        assert why in sub(house, *words).stdout
    for words in (("query",), ("show", "run-1"), ("show", call["call_id"])):
        assert " UNKNOWN" in sub(house, *words).stdout
    for status in ("UNKNOWN", "ERROR"):
        told = sub(house, "tail", "--no-follow", "--status", status).stdout.splitlines()
        assert [line.split()[2] for line in told] == ["UNKNOWN"], "one line, as in a list"
    assert sub(house, "ledger", "verify").returncode == 0
    assert rows(house, "runs", "status:FAILED") == [run]
    assert rows(house, "runs", "status:RUNNING") == []


def test_a_run_with_a_living_shim_is_left_alone(house):
    shim = house.start().ready()
    assert shim.code("echo") == 0
    (run,) = rows(house, "runs")
    assert run["status"] is None
    shim.close()
    shim.wait()
    assert house.status() == "SUCCEEDED"
