"""Closing the runs of a dead process: once, and only with what is known of it."""

import json
import os
from pathlib import Path

import pytest
from tests.hosts import host_in

from subluminal.config.places import Places, places
from subluminal.contracts.decision import PolicyRef
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.vocabulary import Client, Env, Mode, RunStatus
from subluminal.core.runs.abandoned import close_abandoned
from subluminal.core.runs.attendance import Attendance, attendances, note_attendance
from subluminal.core.runs.finding import Finders
from subluminal.core.runs.meta import masked_meta
from subluminal.core.runs.names import journal_dir
from subluminal.core.runs.opening import AbsentState
from subluminal.core.runs.run import Run
from subluminal.journal import Journal
from subluminal.state import layout
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.lock import RunLock
from subluminal.state.run_state import RunState, Total

WHO = Identity(agent_id="a", client=Client.CUSTOM, env=Env.DEV)
POLICY = PolicyRef(policy_id="p", policy_version="1", policy_hash="h")
DEAD = 4_194_303


@pytest.fixture
def where(tmp_path: Path) -> Places:
    return places({"SUB_HOME": str(tmp_path)})


def entered(where: Places, shim_id: str, run_id: str = "run") -> Run:
    """Returns a run as a shim that has just entered it has it."""
    source = Source(host_id="h", proc_id="p", shim_id=shim_id)
    journal = Journal(journal_dir(where, run_id), shim_id, max_bytes=1 << 20, reserve_bytes=0)
    run = Run(run_id, WHO, source, RunState.open(where.state, run_id), journal)
    assert run.enter(Mode.OBSERVE, POLICY)
    note_attendance(where, DEAD, Attendance(run_id, WHO, source))
    return run


def die(run: Run) -> None:
    """Leaves the run as a killed process does: its note stays."""
    with run.state.locked():
        run.state.attach(run.shim_id, DEAD, 1)
    run.close()


def events(where: Places, shim_id: str, run_id: str = "run") -> list[dict[str, object]]:
    path = Path(journal_dir(where, run_id)) / f"{shim_id}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_run_of_a_dead_process_ends_failed(where: Places) -> None:
    die(entered(where, "s1"))
    assert close_abandoned(where, DEAD, "killed") == 1
    kinds = [event["type"] for event in events(where, "s1")]
    assert kinds == ["run_start", "shim_health", "run_end"]
    run = events(where, "s1")[-1]["run"]
    assert isinstance(run, dict)
    assert (run["status"], run["reason"]) == ("FAILED", "killed")
    assert attendances(where, DEAD) == []
    assert close_abandoned(where, DEAD, "killed") == 0, "once"


def test_a_run_with_others_in_it_goes_on(where: Places) -> None:
    other = entered(where, "s2")
    die(entered(where, "s1"))
    assert close_abandoned(where, DEAD, "killed") == 0
    other.leave()
    last = events(where, "s2")[-1]
    assert last["type"] == "run_end"
    assert last["run"]["status"] == "FAILED"  # type: ignore[index]
    other.close()


def test_a_process_that_died_after_it_closed_its_run_is_left_alone(where: Places) -> None:
    run = entered(where, "s1")
    run.leave()
    run.close()
    before = events(where, "s1")
    assert close_abandoned(where, DEAD, "killed") == 0
    assert events(where, "s1") == before


def test_a_run_that_another_shim_ended_meanwhile_did_fail(where: Places) -> None:
    other = entered(where, "s2")
    die(entered(where, "s1"))
    other.leave()
    other.close()
    assert events(where, "s2")[-1]["run"]["status"] == "SUCCEEDED"  # type: ignore[index]
    assert close_abandoned(where, DEAD, "killed") == 1
    assert events(where, "s1")[-1]["run"]["status"] == "FAILED"  # type: ignore[index]


def test_several_runs_and_torn_lines(where: Places) -> None:
    die(entered(where, "s1", "one"))
    die(entered(where, "s2", "two"))
    with open(os.path.join(where.state, "processes", str(DEAD)), "ab") as file:
        file.write(b'{"run_id":"thr')
    assert close_abandoned(where, DEAD, "killed") == 2


def test_nothing_is_known_of_a_process(where: Places) -> None:
    assert close_abandoned(where, DEAD, "killed") == 0


def test_leaving_twice_says_one_thing(where: Places) -> None:
    run = entered(where, "s1")
    run.leave(RunStatus.CANCELLED)
    run.leave(RunStatus.FAILED)
    ends = [event["run"] for event in events(where, "s1") if event["type"] == "run_end"]
    assert [end["status"] for end in ends] == ["CANCELLED"]  # type: ignore[index]
    run.close()


def test_a_process_that_died_before_it_entered_a_run_leaves_no_end_of_it(where: Places) -> None:
    """It notes its attendance first, so that it is never in a run without a note."""
    source = Source(host_id="h", proc_id="p", shim_id="s1")
    Journal(journal_dir(where, "run"), "s1", max_bytes=1 << 20, reserve_bytes=0).close()
    note_attendance(where, DEAD, Attendance("run", WHO, source))
    assert close_abandoned(where, DEAD, "killed") == 0
    assert events(where, "s1") == []
    assert attendances(where, DEAD) == []


def test_a_run_is_noted_before_it_is_entered(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed right after run_start must not leave a run that nobody closes."""
    host = host_in(own_home)
    entered: list[int] = []
    enter = Run.enter

    def look_and_enter(run: Run, *args: object) -> bool:
        entered.append(len(attendances(host.places, os.getpid())))
        return enter(run, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "enter", look_and_enter)
    host.open_run()
    host.close()
    assert entered == [1]


@pytest.mark.parametrize("word", [layout.W_TERMINATED, layout.W_REASON, layout.W_FAILURE])
def test_a_header_with_impossible_numbers_ends_no_process(where: Places, word: int) -> None:
    run = entered(where, "s1")
    run.state._words[word] = 1 << 40
    run.leave()
    ended = events(where, "s1")[-1]["run"]
    assert isinstance(ended, dict)
    assert ended["status"] == ("TERMINATED" if word == layout.W_TERMINATED else ended["status"])
    assert (run.state.terminated() is not None) == (word == layout.W_TERMINATED)
    run.close()


def test_a_run_without_a_state_ends_at_once(where: Places) -> None:
    source = Source(host_id="h", proc_id="p", shim_id="s1")
    journal = Journal(journal_dir(where, "run"), "s1", max_bytes=1 << 20, reserve_bytes=0)
    problem = StateUnusable("runs/run", "it is a directory")
    run = Run("run", WHO, source, AbsentState(problem), journal)
    tries: list[int] = []
    locked = run.state.locked
    run.state.locked = lambda: tries.append(1) or locked()  # type: ignore[method-assign, func-returns-value]
    assert run.end(RunStatus.SUCCEEDED, None, patience_s=60.0) is RunStatus.SUCCEEDED
    assert tries == [1]
    run.close()


def test_a_note_that_a_full_disk_tore_costs_only_its_own_run(where: Places) -> None:
    source = Source(host_id="h", proc_id="p", shim_id="s1")
    note_attendance(where, DEAD, Attendance("one", WHO, source))
    path = Path(where.state) / "processes" / str(DEAD)
    path.write_bytes(path.read_bytes()[:-9])
    note_attendance(where, DEAD, Attendance("two", WHO, source))
    assert [each.run_id for each in attendances(where, DEAD)] == ["two"]


def test_many_dead_processes_start_few_finders(
    where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notes are files, and anybody who can write the home may leave thousands."""
    source = Source(host_id="h", proc_id="p", shim_id="s1")
    for pid in range(DEAD - 50, DEAD):
        note_attendance(where, pid, Attendance("run", WHO, source))
    monkeypatch.setattr(os, "posix_spawn", lambda *_, **__: DEAD)
    finders = Finders(where)
    for _ in range(3):
        finders.look("run")
    assert len(finders.running) == 4


def test_a_mask_that_breaks_the_meta_of_a_run_drops_it() -> None:
    assert masked_meta({"a": "b"}, lambda text: text.replace('":"', "[REDACTED]")) == {}


def test_a_process_that_leaves_waits_for_the_lock(
    where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that leave at once would each believe that the other one ends the run."""
    run = entered(where, "s1")
    run.state.owe(Total.ERRORS)
    real, tries = run.state.locked, 0

    def busy_twice() -> RunLock:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise StateBusy(run.state.path, 50)
        return real()

    monkeypatch.setattr(run.state, "locked", busy_twice)
    run.leave()
    last = events(where, "s1")[-1]
    assert last["type"] == "run_end"
    assert last["run"]["summary"]["errors_total"] == 1  # type: ignore[index]
    run.close()


def test_a_process_that_leaves_does_not_wait_for_a_suspended_one(
    where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = entered(where, "s1")

    def busy() -> RunLock:
        raise StateBusy(run.state.path, 50)

    monkeypatch.setattr(run.state, "locked", busy)
    run.leave()
    assert events(where, "s1")[-1]["type"] != "run_end"
    run.close()
