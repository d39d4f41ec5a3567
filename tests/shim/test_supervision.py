"""However a shim, its client or its server ends: no orphan, a whole journal, a closed run."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from tests.processes import deputy_of, descendants, kill_with_warden, process
from tests.requirements import requirement
from tests.shim.household import SUB, WITHIN_S, wait_until

UNDER_S = 10.0
"""A bound against hanging, in seconds, not a measurement. (no-orphans) aims at three seconds."""

every_server = pytest.mark.parametrize("options", [(), ("stubborn",), ("daemon",)], ids=str)


@requirement("7.4:lifecycle", "1.2:emitted")
def test_a_client_that_closes_leaves_a_whole_record(household):
    shim = household.start("exit=0").ready()
    assert shim.code("echo") == 0
    assert shim.code("fail") == 0
    shim.close()
    assert shim.wait() == 0
    assert household.alive() == []
    kinds = [event["type"] for event in household.events()]
    assert kinds[:2] == ["run_start", "shim_health"]
    assert kinds.count("tool_call_start") == kinds.count("tool_call_decision") == 2
    assert sorted(household.ends()) == [("ERROR", "upstream_error"), ("OK", None)]
    end = household.run_end()
    assert end["status"] == "SUCCEEDED"
    assert {k: v for k, v in end["summary"].items() if k != "duration_ms"} == {
        "calls_total": 2,
        "calls_allowed": 2,
        "calls_blocked": 0,
        "calls_throttled": 0,
        "errors_total": 1,
    }
    states = [event["health"]["state"] for event in household.events("shim_health")]
    assert states == ["spawned", "exited"]


def test_exit_code_and_stderr_of_the_server_reach_the_client(household):
    shim = household.start("exit=7").ready()
    shim.close()
    assert shim.wait() == 7
    assert shim.err == b"bye\n"
    assert household.status() == "SUCCEEDED", "it ended because the client did"


@requirement("001-7.5:end-of-input")
@requirement("6.3:signals")
@every_server
def test_a_killed_client_leaves_nothing(household, options):
    """A killed client leaves only the end of its pipes."""
    household.hurry()
    client = (
        "import subprocess,sys;p=subprocess.Popen(sys.argv[1:],stdin=subprocess.PIPE,"
        'stdout=subprocess.PIPE);p.stdin.write(b\'{"id":1,"method":"tools/call",'
        '"params":{"name":"hang"}}\\n\');p.stdin.flush();p.wait()'
    )
    started = household.start(*options, via=(sys.executable, "-I", "-S", "-c", client))
    wait_until(household.executed, "the call to arrive")
    started.kill()
    assert household.wait_empty() < UNDER_S + 1
    assert household.ends() == [("CANCELLED", "unknown")]
    assert household.status() == "CANCELLED"


def test_a_stubborn_server_is_ended_in_time(household):
    """no-orphans: close stdin, TERM the group, KILL, reap."""
    shim = household.start("stubborn").ready()
    shim.close()
    assert shim.wait() == 128 + signal.SIGKILL
    assert household.alive() == []
    killed = [
        e["health"] for e in household.events("shim_health") if e["health"]["state"] == "killed"
    ]
    assert [each["signal"] for each in killed] == [signal.SIGTERM, signal.SIGKILL]
    kinds = [event["type"] for event in household.events()]
    assert kinds.index("run_end") < kinds.index("shim_health", 2), "first the record"


@requirement("001-7.5:end-of-input")
@every_server
def test_end_of_input_with_nothing_pending(household, options):
    household.hurry()
    shim = household.start(*options).ready()
    begin = time.monotonic()
    shim.close()
    shim.wait()
    assert time.monotonic() - begin < UNDER_S + 1
    assert household.alive() == []
    assert household.status() == "SUCCEEDED"


def test_answers_come_after_the_end_of_input(household):
    """`printf … | sub shim stdio …`: what was asked is answered."""
    shim = household.start()
    gate = household.tmp_path / "gate"
    first, second = shim.ask("gate", {"file": str(gate)}), shim.ask("echo")
    shim.close()
    wait_until(household.executed, "the call to arrive")
    gate.touch()
    assert shim.wait() == 0
    assert set(shim.all_answers()) == {first, second}
    assert household.ends() == [("OK", None)] * 2
    assert household.status() == "SUCCEEDED"


def test_a_shell_pipeline_gets_its_answers(household):
    """The server is not up yet when the input ends."""
    lines = "".join(
        f'{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"echo"}}}}\n'
        for n in range(1, 1001)
    )
    argv = [*SUB, "shim", "stdio", "--server", "echo", "--"]
    ran = subprocess.run(
        [*argv, "sh", "-c", 'read -r slow </dev/null; exec "$@"', "sh", *household.server()],
        input=lines.encode(),
        capture_output=True,
        env=household.env(),
        timeout=WITHIN_S,
    )
    assert ran.returncode == 0
    assert len(ran.stdout.splitlines()) == 1000
    assert household.ends() == [("OK", None)] * 1000


def test_a_server_that_never_answers_is_given_its_grace(household):
    shim = household.start("stubborn").ready()
    shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    begin = time.monotonic()
    shim.close()
    shim.wait()
    assert 2.0 <= time.monotonic() - begin < UNDER_S + 1
    assert household.alive() == []
    assert household.ends() == [("CANCELLED", "unknown")]
    assert household.status() == "CANCELLED"


def test_a_client_that_stops_listening_is_not_waited_for(household):
    shim = household.start("stubborn").ready()
    shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    shim.close()
    shim.process.stdout.close()
    end = household.wait_event("run_end")
    assert end["run"]["status"] == "CANCELLED"
    household.wait_empty()


@requirement("001-7.5:signals")
@requirement("6.3:signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@every_server
def test_a_signal_to_the_shim(household, number, options):
    household.hurry()
    shim = household.start(*options).ready()
    shim.kill(number)
    assert shim.wait() == 128 + number
    assert household.alive() == []
    assert household.status() == "SUCCEEDED", "nothing was in flight"


def test_a_shim_that_was_started_with_nohup_outlives_a_hangup(household):
    household.hurry()
    shim = household.start(via=("nohup",)).ready()
    shim.kill(signal.SIGHUP)
    assert shim.code("echo") == 0
    shim.kill(signal.SIGTERM)
    assert shim.wait() == 128 + signal.SIGTERM
    assert household.alive() == []


@every_server
def test_the_way_claude_stops_a_server(household, options):
    """One client sends SIGINT, SIGTERM after 100 ms and SIGKILL 400 ms later, with its input open."""
    pairs = [socket.socketpair() for _ in range(2)]
    shim = household.start(*options, popen={"stdin": pairs[0][1], "stdout": pairs[1][1]})
    for _, theirs in pairs:
        theirs.close()
    pairs[0][0].sendall(b'{"id":1,"method":"tools/call","params":{"name":"hang"}}\n')
    wait_until(household.executed, "the call to arrive")
    shim.kill(signal.SIGINT)
    signal.sigtimedwait([], 0.1)
    shim.kill(signal.SIGTERM)
    signal.sigtimedwait([], 0.4)
    shim.kill(signal.SIGKILL)
    assert household.wait_empty() < UNDER_S
    shim.process.wait(WITHIN_S)
    for ours, _ in pairs:
        ours.close()
    assert household.ends() == [("CANCELLED", "unknown")]
    assert household.status() == "CANCELLED"
    assert len(household.events("run_end")) == 1, "said before the shim was killed"


@requirement("001-7.5:signals")
@every_server
def test_the_way_codex_stops_a_server(household, options):
    """One client sends SIGTERM to the group, closes the input, and sends SIGKILL 40 ms later."""
    shim = household.start(*options).ready()
    assert shim.code("echo") == 0
    shim.ask("hang")
    wait_until(lambda: len(household.executed()) == 2, "the call to arrive")
    os.killpg(shim.pid, signal.SIGTERM)
    shim.close()
    signal.sigtimedwait([], 0.04)
    shim.kill(signal.SIGKILL)
    at_kill = household.events()
    assert household.wait_empty() < UNDER_S
    kinds = [event["type"] for event in at_kill]
    assert kinds.count("tool_call_end") == 2, "all ends are on record when the kill comes"
    assert kinds.count("run_end") == 1
    assert household.status() == "CANCELLED"


@requirement("7.4:lifecycle", "001-7.5:no-orphans")
@every_server
def test_a_killed_shim(household, options):
    """The warden ends the tree, and says what the shim could not."""
    shim = household.start(*options).ready()
    shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    shim.kill()
    household.wait_event("run_end")
    household.wait_empty()
    end = household.run_end()
    assert end["status"] == "FAILED"
    assert end["reason"] == "the shim was killed with 1 call in flight to server `echo`"
    assert (end["summary"]["calls_lost"], end["summary"]["errors_total"]) == (1, 1)
    assert household.ends() == [("ERROR", "unknown")], "nobody knows how the call ended"
    assert household.events("shim_health")[-1]["health"]["state"] == "killed"
    assert not list((household.home / "state" / "processes").iterdir())


@every_server
def test_a_killed_warden(household, options):
    household.hurry()
    shim = household.start(*options).ready()
    shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    os.kill(household.warden_of(shim), signal.SIGKILL)
    assert shim.wait() == 1
    assert household.alive() == []
    assert household.ends() == [("ERROR", "transport")]
    assert household.status() == "FAILED"


@every_server
def test_a_shim_and_a_warden_that_are_killed_together(household, options):
    shim = household.start(*options).ready()
    kill_with_warden(shim.pid)
    shim.process.wait(WITHIN_S)
    household.wait_empty()


def test_a_killed_deputy(household):
    """The warden ends the server, so nothing depends on a deputy that is not there."""
    shim = household.start("daemon").ready()
    shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    os.kill(deputy_of(shim.pid), signal.SIGKILL)
    assert shim.wait() > 128
    assert household.alive() == []
    assert household.ends() == [("ERROR", "transport")]
    assert household.status() == "FAILED"
    assert "because the deputy was killed" in household.run_end()["reason"]


def stopping_its_warden(household, *options):
    """Starts a server that stops its warden (SIGSTOP) before it begins to serve."""
    shim = household.start(upstream=["sh", "-c", STOP_AND_SERVE, "sh", *household.server(*options)])
    warden = household.warden_of(shim.ready())
    wait_until(lambda: process(warden).state == "T", "a stopped warden")
    return shim


STOP_AND_SERVE = 'kill -STOP $PPID; exec "$@"'


@every_server
def test_a_server_that_stops_its_warden_and_a_shim_that_is_killed(household, options):
    shim = stopping_its_warden(household, *options)
    shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    shim.kill()
    household.wait_event("run_end")
    household.wait_empty()
    assert household.status() == "FAILED"


@every_server
def test_a_server_that_stops_its_warden_and_a_client_that_closes(household, options):
    """The record comes first, as always; then the shim kills warden and tree."""
    household.hurry()
    shim = stopping_its_warden(household, *options)
    assert shim.code("echo") == 0
    shim.close()
    shim.wait()
    assert household.alive() == []
    assert household.status() == "SUCCEEDED"
    assert len(household.events("run_end")) == 1


def test_a_server_that_stops_its_warden_and_is_stopped_by_a_person(household, person):
    shim = stopping_its_warden(household, "daemon")
    hanging = shim.ask("hang")
    wait_until(household.executed, "the call to arrive")
    person("kill", "run-1", "--hard", "--reason", "runaway")
    wait_until(lambda: household.alive() == [shim.pid], "the shim alone")
    assert "runaway" in shim.answer(hanging)["error"]["message"]
    assert shim.code("echo") < 0, "the shim stays, and refuses"
    shim.close()
    assert shim.wait() == 0
    household.wait_empty()


def test_a_stopped_shim_ends_with_its_client(household):
    """A server that stops its shim gains nothing: the client's death lets the shim go on."""
    client = "import subprocess,sys;p=subprocess.Popen(sys.argv[1:],stdin=subprocess.PIPE);p.wait()"
    started = household.start("daemon", via=(sys.executable, "-I", "-S", "-c", client))
    (shim,) = wait_until(lambda: descendants(started.pid)[:1], "the shim")
    household.wait_event("shim_health", health__state="spawned")
    os.kill(shim.pid, signal.SIGSTOP)
    wait_until(lambda: process(shim.pid).state == "T", "a stopped shim")
    started.kill()
    started.process.wait(WITHIN_S)
    household.wait_empty()


def test_a_server_that_crashes(household):
    shim = household.start().ready()
    hanging = shim.ask("hang")
    shim.ask("crash")
    assert shim.wait() == 3
    assert b"about to crash" in shim.err
    assert hanging not in shim.all_answers(), "as without a shim, the client sees the end"
    assert household.alive() == []
    assert household.ends() == [("ERROR", "transport")] * 2
    assert household.status() == "FAILED"
    exited = household.wait_event("shim_health", health__state="exited")
    assert exited["health"]["exit_code"] == 3


def test_a_server_that_is_killed(household):
    shim = household.start().ready()
    pid = household.wait_event("shim_health", health__state="spawned")["health"]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert shim.wait() == 128 + signal.SIGKILL
    assert household.status() == "FAILED"


def test_a_server_that_ends_well_by_itself(household):
    shim = household.start(upstream=["true"])
    assert shim.wait() == 0
    assert household.status() == "SUCCEEDED"


def test_stderr_that_nobody_reads_does_not_hold_up_the_handshake(household):
    read_end, write_end = os.pipe()
    shim = household.start("flood=24", popen={"stderr": write_end})
    os.close(write_end)
    shim.ready()
    assert shim.code("echo") == 0
    shim.close()
    shim.wait()
    os.close(read_end)
    household.wait_empty()


def test_a_wrapper_as_npx_is_one(household):
    """A wrapper that waits for the real server, and does not pass signals on."""
    household.hurry()
    wrapper = ["sh", "-c", 'trap "" TERM INT; "$@"; exit $?', "sh", *household.server("stubborn")]
    shim = household.start(upstream=wrapper).ready()
    assert shim.code("echo") == 0
    shim.kill(signal.SIGTERM)
    assert shim.wait() == 128 + signal.SIGTERM
    assert household.alive() == []


@pytest.mark.parametrize(
    ("program", "code", "reason"),
    [("no-such-server", 127, "no such file or directory"), ("denied", 126, "permission denied")],
)
def test_a_server_that_cannot_be_started(household, program, code, reason):
    """One clear line, and a run that says so."""
    denied = household.tmp_path / "denied"
    denied.write_text("#!/bin/sh\n")
    path = str(denied) if program == "denied" else program
    shim = household.start(upstream=[path])
    shim.ask("echo")
    assert shim.wait() == code
    assert shim.err.decode() == f"error: cannot start `{path}`: {reason}\n"
    kinds = [event["type"] for event in household.events()]
    assert kinds[0] == "run_start"
    assert kinds[-1] == "run_end"
    failed = household.wait_event("shim_health", health__state="failed")
    assert failed["health"]["exit_code"] == code
    assert household.status() == "FAILED"


def test_a_removed_working_directory(household):
    household.cwd.rmdir()
    household.cwd.mkdir()
    via = ("sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh")
    shim = household.start(via=via).ready()
    shim.close()
    assert shim.wait() == 0


def test_the_client_s_pipes_block_again_when_the_shim_is_gone(household):
    read_end, write_end = os.pipe()
    shim = household.start(popen={"stderr": write_end}).ready()
    wait_until(lambda: not os.get_blocking(write_end), "the shim to take it")
    shim.close()
    shim.wait()
    assert os.get_blocking(write_end)
    os.close(read_end)
    os.close(write_end)


def test_a_signal_while_the_shim_is_still_loading(household):
    """Whenever the signal comes, there is no traceback, and no process is left."""
    shims = []
    for number in range(8):
        shims.append(household.start())
        household.warden_of(shims[-1])
        signal.sigtimedwait([], 0.015 * number)
        shims[-1].kill(signal.SIGINT)
    for shim in shims:
        assert shim.wait() in (128 + signal.SIGINT, -signal.SIGINT)
        # The server, a Python program as well, may say so when it is interrupted; we may not.
        assert b"/subluminal/" not in shim.err
    household.wait_empty()
    for run in {event["run_id"] for event in household.events()}:
        household.run_end(run)
