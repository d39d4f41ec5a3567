"""Runs without a call, such as those of `claude mcp list`, are shown only if they are asked for."""

import json
import subprocess

import pytest
from tests.shim.household import SUB, WITHIN_S, Household

TOLD = "2 runs without a call are not shown; `--all` shows them."


@pytest.fixture
def house(tmp_path, own_home, subreaper):
    """A home with two idle runs, one with a call, and one that failed without a call."""
    made = Household(tmp_path, own_home)
    for run, called in (("idle-1", False), ("busy", True), ("idle-2", False)):
        shim = made.start(run=run).ready()
        assert not called or shim.code() == 0
        shim.close()
        shim.wait()
    made.start(run="bad", upstream=["sh", "-c", "echo no licence >&2; exit 9"]).wait()
    yield made
    sub(made, "ledgerd", "stop")
    made.clean()


def sub(house, *words):
    return subprocess.run(
        [*SUB, *words], env=house.env(), capture_output=True, text=True, timeout=WITHIN_S
    )


def found(text):
    """Returns the names of the runs in JSON lines."""
    return sorted({json.loads(line)["run_id"] for line in text.splitlines()})


@pytest.mark.parametrize("command", [("query", "runs"), ("tail", "--no-follow")])
def test_they_are_left_out_and_counted(house, command):
    ran = sub(house, *command, "--json")
    assert found(ran.stdout) == ["bad", "busy"]
    assert ran.stderr.splitlines() == [TOLD]
    ran = sub(house, *command)
    assert "idle" not in ran.stdout
    assert "server `echo` exited with code 9: no licence" in ran.stdout
    assert ran.stderr.splitlines() == [TOLD]
    ran = sub(house, *command, "--json", "--all")
    assert found(ran.stdout) == ["bad", "busy", "idle-1", "idle-2"]
    assert ran.stderr == ""


@pytest.mark.parametrize("words", [("run:idle*",), ("--status", "SUCCEEDED"), ("calls<1",)])
def test_a_filter_that_says_which_runs_it_means_finds_them(house, words):
    ran = sub(house, "query", "runs", *words, "--json")
    assert {"idle-1", "idle-2"} <= set(found(ran.stdout))
    assert ran.stderr == ""


def test_a_run_that_is_named_is_shown(house):
    ran = sub(house, "tail", "--no-follow", "--run", "idle-1")
    assert "START" in ran.stdout
    assert "SUCCEEDED" in ran.stdout
    assert ran.stderr == ""
    assert "no calls" in sub(house, "show", "idle-1").stdout


def test_the_limit_counts_the_runs_that_are_shown(house):
    ran = sub(house, "query", "runs", "--json", "--limit", "2")
    assert found(ran.stdout) == ["bad", "busy"]


def test_the_flag_is_for_runs(house):
    ran = sub(house, "query", "calls", "--all")
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[0] == "error: `--all` is for runs"
