"""Guards in real processes: exits, signals, forks, prefork servers, races, and kill -9."""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import budget, bundle, deny
from tests.adapters.records import calls_of, events_of, lines_of
from tests.adapters.wire import Wire, upstream
from tests.journal.lines import verify_lines
from tests.processes import read, wait_until
from tests.requirements import requirement

from subluminal import Guard, PolicyError, Refused
from subluminal.config.places import places
from subluminal.ledger.client.roll_call import close_what_died

ROOT = Path(__file__).parents[2]
WITHIN_S = 600 if os.environ.get("TORTURE") else 60
# `make torture` sets TORTURE, and runs these at full length.
KILLS, FORKS, CALLS, LIMIT = (200, 200, 200, 5000) if os.environ.get("TORTURE") else (6, 8, 8, 300)

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(own_home: Path) -> Iterator[Start]:
    """Starts the program; what still runs is killed with the test."""
    running: list[subprocess.Popen[str]] = []

    def starts(mode: str, *words: object, **env: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.sdk.program", mode, *map(str, words)],
            cwd=ROOT,
            env={**os.environ, "SUB_RUN_ID": "run-1", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        return process

    yield starts
    for process in running:
        process.kill()
        process.communicate()


def finished(process: "subprocess.Popen[str]", tell: str = "") -> str:
    """Waits for the end of a program; returns what it said."""
    out, _ = process.communicate(tell, timeout=WITHIN_S)
    return out.strip()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def write_policy(home: Path, *rules: dict[str, Any], **options: Any) -> Path:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = home / "policy.yaml"
    file.write_text(json.dumps(bundle(*rules, **options)))
    return file


def run_ends(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(e["run_id"], e["run"]["status"]) for e in events if e["type"] == "run_end"]


def statuses(events: list[dict[str, Any]]) -> list[str]:
    return [call[-1].get("status", "none") for call in calls_of(events)]


def close_dead(home: Path) -> None:
    close_what_died(places({"SUB_HOME": str(home)}))


# Exits and signals


@requirement("sdk:exit")
def test_an_interpreter_that_ends_without_close_ends_its_runs(own_home: Path, start: Start) -> None:
    finished(start("forgets_to_close"))
    events = events_of(own_home, threads=True)
    assert sorted(run_ends(events)) == [("other", "SUCCEEDED"), ("run-1", "SUCCEEDED")]
    assert statuses(events) == ["OK"] * 6
    assert list((own_home / "state" / "processes").glob("*")) == []


@requirement("sdk:exit")
def test_a_call_that_dies_with_its_process_is_ended_by_who_finds_it(
    own_home: Path, start: Start
) -> None:
    finished(start("leaves_a_thread_in_a_call"))
    assert run_ends(events_of(own_home)) == [("other", "SUCCEEDED")]
    close_dead(own_home)
    events = events_of(own_home)
    assert ("run-1", "FAILED") in run_ends(events)
    assert "none" not in statuses(events)


@requirement("sdk:exit")
@pytest.mark.parametrize(
    ("signum", "status"), [(signal.SIGTERM, "CANCELLED"), (signal.SIGINT, "CANCELLED")]
)
def test_a_signal_cancels_the_call_and_ends_the_run(
    own_home: Path, start: Start, signum: signal.Signals, status: str
) -> None:
    process = start("is_terminated")
    assert said(process) == "here"
    process.send_signal(signum)
    finished(process)
    events = events_of(own_home)
    assert statuses(events) == [status]
    assert [run_id for run_id, _ in run_ends(events)] == ["run-1"]


@pytest.mark.parametrize("mode", ["hangs_in_a_call", "exits_at_once"])
def test_whoever_finds_a_dead_process_ends_its_run(own_home: Path, start: Start, mode: str) -> None:
    """kill -9 in a call, and os._exit after one."""
    process = start(mode)
    if mode == "hangs_in_a_call":
        assert said(process) == "here"
        process.kill()
    finished(process)
    assert run_ends(events_of(own_home)) == []
    close_dead(own_home)
    assert run_ends(events_of(own_home)) == [("run-1", "FAILED")]


@requirement("sdk:interrupted")
def test_a_handler_that_closes_the_guard_breaks_nothing(own_home: Path, start: Start) -> None:
    chance = random.Random(7)
    for number in range(8):
        process = start("closes_in_a_handler", chance.uniform(0.01, 0.05), SUB_RUN_ID=f"r{number}")
        finished(process)
        assert process.returncode == 0
    events = events_of(own_home)
    assert "none" not in statuses(events)
    assert len(run_ends(events)) == 8


# Forks


@requirement("sdk:forks")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_are_shims_of_the_run(
    own_home: Path, start: Start, method: str
) -> None:
    write_policy(own_home, budget(5))
    finished(start("multiprocessing", method))
    events = events_of(own_home)
    actions = Counter(call[1]["decision"]["action"] for call in calls_of(events))
    assert actions == {"ALLOW": 5, "BLOCK": 1}
    shims = {call[0]["source"]["shim_id"] for call in calls_of(events)}
    assert len(shims) == 5
    assert run_ends(events)[-1] == ("run-1", "SUCCEEDED")
    assert list((own_home / "state" / "processes").glob("*")) == [], "every child has left"


@requirement("sdk:forks")
def test_workers_of_a_prefork_server_share_the_run(own_home: Path, start: Start) -> None:
    write_policy(own_home, budget(6))
    server = start("prefork", 3)
    pids = [int(pid) for pid in said(server).split()]
    for _ in range(3):
        tell(server, "w\n")
    assert [said(server) for _ in range(3)] == ["done"] * 3
    os.kill(pids[0], signal.SIGKILL)
    os.kill(pids[1], signal.SIGTERM)
    for pid in pids[:2]:
        wait_until(lambda: b") Z" in read(pid, "stat"), f"{pid} ends")  # noqa: B023 - at once
    tell(server, "another\n")
    assert int(said(server)) not in pids
    for _ in range(4):
        tell(server, "w\n")
    answers = Counter(said(server) for _ in range(4))
    assert answers == {"done": 3, "refused": 1}
    finished(server)
    close_dead(own_home)
    events = events_of(own_home)
    assert len(calls_of(events)) == 7
    assert run_ends(events)[-1][0] == "run-1"


@requirement("sdk:forks")
@pytest.mark.timeout(60 + 5 * FORKS)
def test_a_fork_while_other_threads_decide_does_not_hang(own_home: Path, start: Start) -> None:
    assert finished(start("forks_under_load", FORKS)).split() == ["2"] * FORKS
    close_dead(own_home)
    events_of(own_home, threads=True)


# Races


@requirement("sdk:exact")
@pytest.mark.timeout(60 + CALLS)
def test_processes_threads_tasks_forks_and_a_shim_share_one_budget(
    own_home: Path, tmp_path: Path, start: Start
) -> None:
    """4 processes of 8 threads, half of them with event loops, 2 forks of each, and a shim."""
    write_policy(own_home, budget(LIMIT))
    wire = Wire(upstream("echoer"), home=own_home, place=tmp_path)
    racers = [start("race", 8, CALLS, **({"RACE_FIRST": "1"} if n % 2 else {})) for n in range(4)]
    assert [said(racer) for racer in racers] == ["ready"] * 4
    for racer in racers:
        tell(racer, "\n")
    shim = 0
    for number in range(100):
        wire.send(_message(number))
        shim += "result" in wire.line()
    found = sum(int(finished(racer)) for racer in racers)
    wire.finish()
    wire.abandon()
    close_dead(own_home)
    events = events_of(own_home, threads=True)
    asked = 4 * (8 + 2) * CALLS + 100 + 2
    assert len(calls_of(events)) == asked
    assert found + shim + 2 == LIMIT
    actions = Counter(call[1]["decision"]["action"] for call in calls_of(events))
    assert actions == {"ALLOW": LIMIT, "BLOCK": asked - LIMIT}
    assert run_ends(events)[-1][0] == "run-1"


def _message(number: int) -> bytes:
    params = {"name": "t", "arguments": {}, "_meta": {"answer": {"result": {}}}}
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(body).encode() + b"\n"


@requirement("sdk:kill")
@pytest.mark.timeout(30 + 10 * KILLS)
def test_nothing_is_executed_without_a_journalled_decision(
    own_home: Path, tmp_path: Path, start: Start
) -> None:
    chance = random.Random(20261116)
    write_policy(own_home, deny("rm"))
    for number in range(KILLS):
        log, run_id = tmp_path / f"executed-{number}", f"run-{number}"
        process = start("executes", log, SUB_RUN_ID=run_id)
        assert said(process) == "here"
        signal.sigtimedwait([], chance.uniform(0, 0.2))
        process.kill()
        finished(process)
        close_dead(own_home)
        # A call may be counted and not journalled when the process dies: then it did not run.
        lines = [line for _, line in lines_of(own_home)]
        events = [e for e in map(json.loads, lines) if e["run_id"] == run_id]
        (shim,) = {e["source"]["shim_id"] for e in events} or {""}
        assert (
            verify_lines([line for each, line in lines_of(own_home) if each == shim], shim) is None
        )
        executed = log.read_text().splitlines() if log.exists() else []
        decided = {
            call[0]["call"]["args_hash"]
            for call in calls_of(events)
            if call[1]["decision"]["action"] == "ALLOW"
        }
        hashes = {hashlib.sha256(b'{"number":%d}' % int(n)).hexdigest() for n in executed}
        assert hashes <= decided
        assert "none" not in statuses(events)


# What does not work


@requirement("sdk:on-error")
@pytest.mark.parametrize(
    ("on_error", "expected"), [("BLOCK", "JOURNAL_UNAVAILABLE [1]"), ("ALLOW", "passed [1, 2]")]
)
def test_a_full_disk(own_home: Path, start: Start, on_error: str, expected: str) -> None:
    policy = write_policy(own_home, deny("rm"), decision_on_error=on_error)
    assert finished(start("journal_is_full", policy)) == expected


@requirement("sdk:on-error")
def test_a_home_that_cannot_be_written_and_a_broken_policy(tmp_path: Path) -> None:
    """No user can make a directory below /proc, not even root."""
    ran: list[int] = []
    for on_error, expected in (("BLOCK", "EVALUATION_ERROR"), ("ALLOW", None)):
        file = tmp_path / f"{on_error}.json"
        file.write_text(json.dumps(bundle(deny("rm"), decision_on_error=on_error)))
        with pytest.warns(RuntimeWarning, match="`/proc/subluminal` .*; nothing is recorded"):
            guard = Guard(home="/proc/subluminal", policy=file)
        with guard:
            act = guard.tool(name="act")(ran.append)
            if expected is None:
                act(2)
            else:
                with pytest.raises(Refused) as caught:
                    act(1)
                assert caught.value.reason_code == expected
    assert ran == [2]
    with pytest.raises(PolicyError, match="cannot be written"):
        Guard(home="/proc/subluminal", policy=bundle(deny("rm")))


@requirement("sdk:on-error")
def test_a_policy_of_the_user_that_does_not_compile_refuses_calls(own_home: Path) -> None:
    write_policy(own_home).write_text("policy_id: [")
    with Guard() as guard:
        assert guard.check("t", {}).reason_code == "EVALUATION_ERROR"
