"""After kill -9 every decided call gets its end, exactly once, by whoever finds it first."""

import os
import signal
import subprocess

import pytest
from tests.processes import WITHIN_S, wait_until
from tests.requirements import requirement
from tests.shim.household import SUB, deny, policy

from subluminal.config.places import places
from subluminal.core.runs.attendance import attending
from subluminal.core.runs.finding import last_words_command
from subluminal.ledger.client.roll_call import close_what_died

LOST = ("ERROR", "unknown")


def kill_with_warden(household, shim):
    """Kills a shim and its warden, so that neither records the other's death."""
    warden = household.warden_of(shim)
    for pid in (warden, shim.pid):
        os.kill(pid, signal.SIGSTOP)
    for pid in (warden, shim.pid):
        os.kill(pid, signal.SIGKILL)
    shim.process.wait(WITHIN_S)


def hanging(household, calls=1, **options):
    """Starts a shim with calls in flight."""
    before = len(household.executed())
    shim = household.start(**options).ready()
    for n in range(calls):
        shim.ask("hang", {"n": n})
    wait_until(lambda: len(household.executed()) == before + calls, "the calls to arrive")
    return shim


def find(household, pid):
    """Starts a process that completes the record of a dead one."""
    command = last_words_command(places({"SUB_HOME": str(household.home)}), pid)
    return subprocess.Popen(command, env=household.env())


def where(household):
    return places({"SUB_HOME": str(household.home)})


@requirement("1.7:tool-call-end", "1.8:run-end")
def test_the_next_shim_of_the_run_ends_the_calls_of_a_dead_one(household):
    dead = hanging(household, 2)
    kill_with_warden(household, dead)
    assert household.ends() == []
    heir = household.start().ready()
    wait_until(lambda: household.ends() == [LOST] * 2, "the ends of the calls")
    wait_until(lambda: attending(where(household)) == [heir.pid], "the note of the dead shim")
    assert household.events("run_end") == [], "the run goes on"
    assert heir.code() == 0
    heir.close()
    heir.wait()
    (end,) = household.events("run_end")
    summary = end["run"]["summary"]
    assert (summary["calls_total"], summary["errors_total"], summary["calls_lost"]) == (3, 2, 2)
    assert end["run"]["status"] == "FAILED"
    assert "with 2 calls in flight to server `echo`" in end["run"]["reason"]
    household.wait_empty()


def test_a_shim_of_another_run_leaves_them_to_others(household):
    kill_with_warden(household, hanging(household))
    other = household.start(run="run-2").ready()
    assert other.code() == 0
    other.close()
    other.wait()
    assert household.ends() == [("OK", None)]
    assert close_what_died(where(household)) == 1
    assert sorted(household.ends()) == [LOST, ("OK", None)]


def test_many_finders_at_once_write_each_end_once(household):
    dead = hanging(household, 50)
    kill_with_warden(household, dead)
    finders = [find(household, dead.pid) for _ in range(6)]
    assert [finder.wait(WITHIN_S) for finder in finders] == [0] * 6
    assert household.ends() == [LOST] * 50
    (end,) = household.events("run_end")
    assert end["run"]["summary"]["errors_total"] == 50
    assert attending(where(household)) == []


def test_finders_that_are_killed_leave_the_rest_to_the_next(household):
    """At random moments of their work; the chain stays whole, and no call ends twice."""
    for round_number in range(8):
        run = f"run-{round_number}"
        dead = hanging(household, 30, run=run)
        kill_with_warden(household, dead)
        for attempt in range(3):
            finder = find(household, dead.pid)
            signal.sigtimedwait([], 0.04 + 0.012 * ((round_number + 3 * attempt) % 8))
            finder.kill()
            finder.wait(WITHIN_S)
        close_what_died(where(household))
        ends = household.events("tool_call_end", run)
        assert len(ends) == len({end["call"]["call_id"] for end in ends}) == 30
        assert household.status(run) == "FAILED"
        assert household.run_end(run)["summary"]["calls_lost"] == 30
    assert attending(where(household)) == []


def test_nothing_living_is_closed(household):
    shim = hanging(household)
    for finder in [find(household, shim.pid) for _ in range(3)]:
        assert finder.wait(WITHIN_S) == 0
    close_what_died(where(household))
    beside = household.start().ready()
    assert beside.code() == 0
    wait_until(lambda: household.ends() == [("OK", None)], "the end of the one call")
    assert household.events("run_end") == []
    assert sorted(attending(where(household))) == sorted([shim.pid, beside.pid])
    for each in (shim, beside):
        each.kill(signal.SIGTERM)
    for each in (shim, beside):
        each.wait()
    assert household.status() == "CANCELLED"


def test_a_refused_call_that_has_no_end_was_refused(household):
    """The end of a refusal is written a little after its answer."""
    household.write_policy(policy(deny("rm")))
    shim = household.start().ready()
    assert shim.code() == 0
    household.wait_event("tool_call_end")
    for n in range(300):
        shim.ask("rm", {"n": n})
    wait_until(lambda: len(household.events("tool_call_decision")) > 20, "some decisions")
    shim.kill()
    household.wait_event("run_end")
    decided = {event["call"]["call_id"] for event in household.events("tool_call_decision")}
    ended = [event["call"]["call_id"] for event in household.events("tool_call_end")]
    assert sorted(ended) == sorted(decided)
    assert set(household.ends()) == {("OK", None), ("ERROR", "policy_block")}
    assert "calls_lost" not in household.run_end()["summary"]


@pytest.mark.parametrize("words", [("--status", "UNKNOWN"), ("error:unknown",)])
def test_sub_query_finds_them_without_ledgerd(household, words):
    kill_with_warden(household, hanging(household))
    ran = subprocess.run(
        [*SUB, "query", *words, "--json"], env=household.env(), capture_output=True, text=True
    )
    subprocess.run([*SUB, "ledgerd", "stop"], env=household.env(), capture_output=True)
    assert ran.returncode == 0, ran.stderr
    assert '"tool_name":"hang"' in ran.stdout
    assert '"status":"ERROR"' in ran.stdout
    assert '"error_class":"unknown"' in ran.stdout


@pytest.mark.parametrize("victim", ["warden", "server"])
def test_calls_that_come_when_the_server_is_gone_are_not_left_open(household, victim):
    """From before the shim's first turn on: a call that is decided gets its end."""
    for number in range(8):
        run = f"run-{number}"
        upstream = ["sh", "-c", "exit 3"] if victim == "server" else None
        shim = household.start(run=run, upstream=upstream, log=household.tmp_path / run)
        for n in range(100):
            shim.ask("echo", {"n": n})
        if victim == "warden":
            warden = household.warden_of(shim)
            signal.sigtimedwait([], 0.02 * number)
            os.kill(warden, signal.SIGKILL)
        shim.wait()
        decided = [e["call"]["call_id"] for e in household.events("tool_call_decision", run)]
        ended = [e["call"]["call_id"] for e in household.events("tool_call_end", run)]
        assert sorted(ended) == sorted(decided)
        assert len(household.events("run_end", run)) == 1, "the run was entered once"
    household.wait_empty()
