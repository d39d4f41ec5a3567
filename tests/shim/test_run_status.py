"""How a run ended, and why: one bad server, a client that kills the tree, a person, a lost call."""

import contextlib
import os
import signal
import time

import pytest
from tests.processes import WITHIN_S, wait_until

TOKEN = "ghp_" + "a1B2c3D4" * 5
STACK = "Error: bad credentials\n    at main (server.js:7:3)\n    at run\n\nNode.js v22.3.0"


def leave(*shims):
    for shim in shims:
        shim.close()
    for shim in shims:
        shim.wait()


def kill_as_copilot_does(household, shim, gap_s):
    """SIGTERM to the server, the warden and the shim, then SIGKILL: 0.6 ms after its SIGTERM.

    Returns whether all of it took less than 0.1 s; a busy machine may take longer.
    """
    (spawned,) = household.events("shim_health", shim.run)
    warden = household.warden_of(shim)
    begin = time.monotonic()
    for pid in (spawned["health"]["pid"], warden, shim.pid):
        with contextlib.suppress(ProcessLookupError):  # it has left already
            os.kill(pid, signal.SIGTERM)
        signal.sigtimedwait([], gap_s if pid != shim.pid else 0.0006)
    shim.kill()
    took_s = time.monotonic() - begin
    shim.close()
    shim.process.wait(WITHIN_S)
    return took_s < 0.1


@pytest.mark.parametrize("gap_s", [0.0, 0.001, 0.03])
@pytest.mark.parametrize("options", [(), ("term=0",), ("term=1",), ("term=143",), ("stubborn",)])
def test_a_client_that_kills_the_tree_between_calls_ends_the_run_in_order(
    household, options, gap_s
):
    """Copilot CLI 1.0.102 ends its servers this way, leaf first."""
    for number in range(20):
        shim = household.start(*options, run=f"run-{number}").ready()
        shim.run = f"run-{number}"
        assert shim.code() == 0
        household.wait_event("tool_call_end", run_id=shim.run)
        if kill_as_copilot_does(household, shim, gap_s):
            break
    household.wait_event("run_end", run_id=shim.run)
    household.wait_empty()
    assert household.status(shim.run) == "SUCCEEDED", household.run_end(shim.run)
    assert "server_failure" not in household.run_end(shim.run)["summary"]


def test_a_server_that_is_told_to_stop_during_a_call_is_cancelled(household):
    shim = household.start().ready()
    shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    os.kill(household.wait_event("shim_health")["health"]["pid"], signal.SIGTERM)
    shim.wait()
    assert household.ends() == [("CANCELLED", "transport")]
    assert household.status() == "CANCELLED"


BAD = {
    "absent": {"upstream": ["no-such-server"]},
    "exits": {"upstream": ["sh", "-c", "echo one >&2; echo two >&2; exit 3"]},
    "crashes": {"upstream": ["sh", "-c", "read line; kill -9 $$"]},
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("first", [True, False])
def test_one_bad_server_does_not_fail_the_run(household, bad, first):
    """The mark of the bad one stays on the run, whichever of the two leaves last."""
    good = None if first else household.start().ready()
    worse = household.start(**BAD[bad])
    if bad == "crashes":
        worse.write(b"\n")
    worse.wait()
    if first:
        assert household.status() == "FAILED", "there is no other server yet"
        good = household.start().ready()
    assert good.code() == 0
    leave(good)
    end = household.run_end()
    assert end["status"] == "SUCCEEDED"
    assert "reason" not in end
    assert end["summary"]["server_failure"]["server_name"] == "echo"


@pytest.mark.parametrize(
    ("bad", "reason", "more"),
    [
        (
            "absent",
            "server `echo`: cannot start `no-such-server`: no such file or directory",
            {"exit_code": 127},
        ),
        ("exits", "server `echo` exited with code 3: two", {"exit_code": 3, "stderr": "two"}),
        ("crashes", "server `echo` was ended by signal 9", {"signal": 9}),
    ],
)
def test_a_run_in_which_no_server_worked_has_failed_and_says_why(household, bad, reason, more):
    for _ in range(2):
        shim = household.start(**BAD[bad])
        if bad == "crashes":
            shim.write(b"\n")
        shim.wait()
    end = household.run_end()
    assert (end["status"], end["reason"], end["summary"]["reason"]) == ("FAILED", reason, reason)
    failure = end["summary"]["server_failure"]
    assert {name: failure[name] for name in more} == more
    health = [event["health"] for event in household.events("shim_health")]
    told = [each for each in health if each["state"] in ("exited", "failed")]
    assert all(each["detail"] and each["server_name"] == "echo" for each in told)


def test_a_call_that_a_crash_has_lost_fails_the_run_although_others_work(household):
    other = household.start().ready()
    shim = household.start().ready()
    shim.ask("crash")
    assert shim.wait() == 3
    assert other.code() == 0
    leave(other)
    end = household.run_end()
    assert end["status"] == "FAILED"
    assert end["reason"] == "server `echo` exited with code 3 with 1 call in flight: about to crash"


def test_the_line_of_stderr_is_masked_cut_and_not_part_of_a_stack_trace(household):
    long = "x" * 2_000
    for said, wanted in [
        (f"denied: token {TOKEN}", "[REDACTED:"),
        (STACK, "Error: bad credentials"),
        (f"Traceback:\n  File\nValueError: no {long}", "ValueError: no xxx"),
    ]:
        run = f"run-{wanted[:5]}"
        script = 'printf "%s\\n" "$1" >&2; exit 1'
        shim = household.start(upstream=["sh", "-c", script, "sh", said], run=run)
        shim.wait()
        failure = household.run_end(run)["summary"]["server_failure"]
        assert wanted in failure["stderr"]
        assert len(failure["stderr"]) <= 300
        assert household.run_end(run)["reason"].endswith(failure["stderr"])
    for file in household.journals():
        with open(file.path) as text:
            assert TOKEN not in text.read()


def test_stderr_that_never_ends_costs_no_memory_and_leaves_no_line(household):
    script = "head -c 3000000 /dev/zero | tr '\\0' y >&2; exit 4"
    shim = household.start(upstream=["sh", "-c", script])
    shim.wait()
    failure = household.run_end()["summary"]["server_failure"]
    assert failure["exit_code"] == 4
    assert "stderr" not in failure


@pytest.mark.parametrize("stream", ["1", "2"])
def test_output_that_never_ends_does_not_keep_the_shim_from_its_end(household, stream):
    """What the server left behind writes on, faster than the shim reads."""
    script = f"yes '{{}}' >&{stream} & sleep 0; exit 4"
    household.hurry()
    shim = household.start(upstream=["sh", "-c", script])
    assert shim.wait() == 4
    household.wait_empty()
    assert household.run_end()["summary"]["server_failure"]["exit_code"] == 4


def test_a_person_who_stops_a_run_is_named(household, person):
    shim = household.start().ready()
    assert shim.code() == 0
    person("kill", "run-1", "--reason", "lunch")
    told = shim.call("echo")["error"]["message"]
    assert "by policy" not in told
    leave(shim)
    end = household.run_end()
    assert end["status"] == "TERMINATED"
    assert end["reason"].endswith("stopped this run with `sub kill`: lunch")


def test_a_rule_that_ends_a_run_is_the_reason(household):
    from tests.shim.household import budget, policy

    household.write_policy(policy(budget(1, "TERMINATE_RUN")))
    shim = household.start().ready()
    assert shim.code() == 0
    assert shim.code() == -32084
    leave(shim)
    end = household.run_end()
    assert end["status"] == "TERMINATED"
    assert "budget" in end["reason"]
