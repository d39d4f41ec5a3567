"""The door in real processes: threads, forks, races of one nonce, and kill -9 at every point."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.in_process.conftest import Till
from tests.adapters.in_process.test_door import decisions
from tests.adapters.policies import budget, bundle
from tests.adapters.records import calls_of, events_of
from tests.requirements import requirement

ROOT = Path(__file__).parents[3]
WITHIN_S = 60


def start(home: Path, point: str, nonce: str = "n", run_id: str = "run-1") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.in_process.mortal", str(home), run_id, point, nonce],
        cwd=ROOT,
        env={**os.environ, "SUB_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=WITHIN_S)
    return out.strip()


@requirement("kernel:unknown")
@pytest.mark.parametrize("point", ["claimed", "journalled", "handler", "done"])
def test_after_a_kill_the_outcome_is_unknown(own_home: Path, point: str):
    process = start(own_home, point)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == point
    finally:
        process.kill()
        process.communicate(timeout=WITHIN_S)
    assert said(start(own_home, "never")) == "BLOCK ledger_replay_suppressed unknown"
    assert said(start(own_home, "never", "another")) == "ALLOW DEFAULT_ALLOW None"
    events_of(own_home)


@requirement("kernel:once")
def test_of_many_processes_with_one_nonce_one_runs(own_home: Path):
    racers = [start(own_home, "never", run_id=f"run-{number}") for number in range(6)]
    answers = [said(racer) for racer in racers]
    # One nonce in several runs is several intents: the run is the session of the actor.
    assert answers == ["ALLOW DEFAULT_ALLOW None"] * 6
    racers = [start(own_home, "never", "again", run_id="run-x") for _ in range(6)]
    answers = [said(racer).split()[0] for racer in racers]
    assert sorted(answers) == ["ALLOW", *["BLOCK"] * 5]


@requirement("kernel:strictest")
def test_threads_share_budgets_exactly(till: Till):
    till.write_policy(bundle(budget(20)))
    till.open(executions="off")

    def one(number: int) -> str:
        return str(till.execute("EXECUTE", f"n-{number}").action)

    with ThreadPoolExecutor(8) as pool:
        actions = list(pool.map(one, range(60)))
    assert actions.count("ALLOW") == len(till.paid) == 20
    events = till.events(threads=True)
    assert len(calls_of(events)) == 60


def test_threads_race_one_nonce(till: Till):
    till.open()
    with ThreadPoolExecutor(8) as pool:
        actions = list(pool.map(lambda _: str(till.execute("EXECUTE", "n").action), range(24)))
    assert sorted(actions) == ["ALLOW", *["BLOCK"] * 23]
    assert till.paid == [5]
    till.events(threads=True)


def test_a_forked_child_goes_on(till: Till):
    till.execute("EXECUTE", "a")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            first, again = till.execute("EXECUTE", "b"), till.execute("EXECUTE", "a")
            code = 0 if (first.action, again.action) == ("ALLOW", "BLOCK") else 2
            till.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert till.execute("EXECUTE", "b").reason_code == "ledger_replay_suppressed"
    events = till.events()
    assert len({event["source"]["shim_id"] for event in events}) == 2
    assert len(decisions(events)) == 4


def test_a_closed_door_keeps_no_file_open(till: Till):
    till.execute("EXECUTE", "first")
    till.close()
    before = len(os.listdir("/dev/fd"))
    for number in range(3):
        till.execute("EXECUTE", f"n-{number}")
        till.close()
    assert len(os.listdir("/dev/fd")) == before


def test_a_full_disk_executes_nothing(till: Till, monkeypatch: pytest.MonkeyPatch):
    from subluminal.journal import JournalUnavailable
    from subluminal.journal.writing import Journal

    till.execute("EXECUTE", "a")
    original = Journal.write_chained

    def full(*_lines: Any) -> None:
        raise JournalUnavailable("journal", OSError(errno.ENOSPC, "no space left on device"))

    monkeypatch.setattr(Journal, "write_chained", full)
    done = till.execute("EXECUTE", "b")
    assert (done.action, done.reason_code) == ("BLOCK", "JOURNAL_UNAVAILABLE")
    monkeypatch.setattr(Journal, "write_chained", original)
    assert till.execute("EXECUTE", "b").action == "ALLOW"
    assert till.paid == [5, 5]


def test_an_audit_record_that_is_lost_executes_nothing(till: Till, monkeypatch: pytest.MonkeyPatch):
    from subluminal.core.runs.run import Run

    till.execute("EXECUTE", "a")
    monkeypatch.setattr(Run, "record", lambda *_: False)
    done = till.execute("EXECUTE", "b")
    assert (done.action, done.reason_code) == ("BLOCK", "JOURNAL_UNAVAILABLE")
    monkeypatch.undo()
    assert till.paid == [5]
