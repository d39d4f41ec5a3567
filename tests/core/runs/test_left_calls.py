"""The record of a dead process is completed once, wherever those who complete it are killed."""

import json
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import budget, snapshot
from tests.core.runs.test_abandoned import DEAD, die
from tests.hosts import host_in

from subluminal.config.places import Places, places
from subluminal.contracts.call import ToolCall
from subluminal.contracts.identity import Identity, Source
from subluminal.contracts.vocabulary import Client, Env, Status, Transport
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding
from subluminal.core.runs import abandoned
from subluminal.core.runs.abandoned import close_abandoned
from subluminal.core.runs.attendance import Attendance, attendances, note_attendance
from subluminal.core.runs.finding import last_words_command
from subluminal.core.runs.names import journal_dir
from subluminal.core.runs.run import Run
from subluminal.journal import Journal
from subluminal.journal.verifying import ChainCheck
from subluminal.state.run_state import RunState

WHO = Identity(agent_id="a", client=Client.CUSTOM, env=Env.DEV)
CALLS = 5
STEPS: dict[str, tuple[object, str, str]] = {
    "before the ends are written": (abandoned, "end_calls", "before"),
    "after the ends are written": (abandoned, "_detach", "before"),
    "before the shim is counted": (RunState, "count_lost", "before"),
    "after the shim is counted": (RunState, "count_lost", "after"),
    "before the run is marked as ended": (RunState, "mark_ended", "before"),
    "after the shim is detached": (abandoned, "_detach", "after"),
    "before run_end is written": (abandoned, "end_run", "before"),
    "after the record is complete": (abandoned, "forget_process", "before"),
}


class Killed(BaseException):
    """Stands for SIGKILL: nothing that this process would do next is done."""


@pytest.fixture
def where(own_home: Path) -> Places:
    return places({"SUB_HOME": str(own_home)})


def text(n: int) -> bytes:
    return b'{"n":%d}' % n


def call(n: int) -> ToolCall:
    return ToolCall(
        server_name="echo",
        tool_name="t",
        args={"n": n},
        args_hash=sha256(text(n)).hexdigest(),
        bytes_in=10,
        transport=Transport.MCP_STDIO,
    )


def killed_host(home: Path, where: Places) -> Host:
    """Returns a host that began CALLS calls, ended one of them and was then killed."""
    host = host_in(home, run_id="run", identity=WHO)
    run = host.open_run()
    run.health("spawned", server_name="echo", pid=1)
    rulings = [host.begin(call(n), text(n)) for n in range(CALLS + 1)]
    host.finish(rulings[0], CallEnding(Status.OK, 1))
    host.flush()
    note_attendance(where, DEAD, Attendance("run", WHO, run.source))
    die(run)
    return host


def events(where: Places) -> list[dict[str, Any]]:
    """Proves every chain of the run, and returns its events."""
    found = []
    for path in sorted(Path(journal_dir(where, "run")).iterdir()):
        chain = ChainCheck(path.stem)
        for line in path.read_bytes().splitlines():
            assert chain.feed(line) is None, chain.damage
            found.append(json.loads(line))
    return found


def ends(where: Places) -> list[tuple[str, str]]:
    return [
        (each["status"], each["error"]["class"])
        for each in events(where)
        if each["type"] == "tool_call_end" and "error" in each
    ]


def stop_at(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, moment: str
) -> pytest.MonkeyPatch:
    original: Callable[..., Any] = getattr(owner, name)

    def step(*args: Any, **kwargs: Any) -> None:
        if moment == "after":
            original(*args, **kwargs)
        raise Killed

    monkeypatch.setattr(owner, name, step)
    return monkeypatch


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("times", [1, 3])
def test_a_finder_that_is_killed_leaves_the_rest_to_the_next(
    own_home: Path, where: Places, monkeypatch: pytest.MonkeyPatch, step: str, times: int
) -> None:
    killed_host(own_home, where)
    with monkeypatch.context() as patch:
        stop_at(patch, *STEPS[step])
        for _ in range(times):
            with pytest.raises(Killed):
                close_abandoned(where, DEAD, "killed")
            assert attendances(where, DEAD), "the note stays until all is done"
    close_abandoned(where, DEAD, "killed")
    assert attendances(where, DEAD) == []
    assert ends(where) == [("ERROR", "unknown")] * CALLS
    last = events(where)[-1]
    assert last["type"] == "run_end"
    assert last["run"]["status"] == "FAILED"
    assert last["run"]["summary"]["calls_lost"] == CALLS
    assert last["run"]["summary"]["errors_total"] == CALLS
    assert last["run"]["reason"] == "killed with 5 calls in flight to server `echo`"


def test_a_torn_write_of_the_ends_is_continued(own_home: Path, where: Places) -> None:
    killed_host(own_home, where)
    close_abandoned(where, DEAD, "killed")
    whole = [each["type"] for each in events(where)]
    (path,) = Path(journal_dir(where, "run")).iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"unknown"' in line)
    shim_id = path.stem
    for kept in range(first, len(lines)):
        for torn in (b"", lines[kept][: len(lines[kept]) // 2]):
            path.write_bytes(b"".join(lines[:kept]) + torn)
            source = Source(host_id="h", proc_id="p", shim_id=shim_id)
            note_attendance(where, DEAD, Attendance("run", WHO, source))
            close_abandoned(where, DEAD, "killed")
            assert [each["type"] for each in events(where)][: first + CALLS] == whole[
                : first + CALLS
            ]
            assert ends(where) == [("ERROR", "unknown")] * CALLS
            assert events(where)[-1]["run"]["summary"]["calls_lost"] == CALLS


def test_a_shim_that_died_between_calls_has_lost_nothing(own_home: Path, where: Places) -> None:
    """Clients kill their servers half a millisecond after SIGTERM."""
    host = host_in(own_home, run_id="run", identity=WHO)
    run = host.open_run()
    run.health("spawned", server_name="echo", pid=1)
    host.finish(host.begin(call(1), text(1)), CallEnding(Status.OK, 1))
    host.flush()
    note_attendance(where, DEAD, Attendance("run", WHO, run.source))
    die(run)
    assert close_abandoned(where, DEAD, "killed") == 1
    ended = events(where)[-1]["run"]
    assert ended["status"] == "SUCCEEDED"
    assert ended["reason"] == "killed with no call in flight to server `echo`"
    assert "calls_lost" not in ended["summary"]


def test_the_journal_of_a_living_process_is_not_touched(own_home: Path, where: Places) -> None:
    """A reused pid: the note names a process that lives. Its journal's lock tells."""
    host = host_in(own_home, run_id="run", identity=WHO)
    run: Run = host.open_run()
    host.begin(call(1), text(1))
    note_attendance(where, DEAD, Attendance("run", WHO, run.source))
    before = events(where)
    assert close_abandoned(where, DEAD, "killed") == 0
    assert events(where) == before
    assert attendances(where, DEAD), "it may still die"
    host.close()


def test_a_call_that_was_not_decided_was_not_forwarded(own_home: Path, where: Places) -> None:
    """The write of start and decision was torn between the two."""
    killed_host(own_home, where)
    (path,) = Path(journal_dir(where, "run")).iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if line.startswith(b'{"type":"tool_call_start"'))
    path.write_bytes(b"".join(lines[: last + 1]))
    close_abandoned(where, DEAD, "killed")
    assert ends(where)[-1] == ("ERROR", "policy_block")


def test_a_call_that_was_refused_in_a_further_round_is_not_lost(
    own_home: Path, where: Places
) -> None:
    host = host_in(own_home, snapshot(budget(9)), run_id="run", identity=WHO)
    run = host.open_run()
    assert not host.begin_round(host.begin(call(1), text(1)), 99, 10, text(1))
    note_attendance(where, DEAD, Attendance("run", WHO, run.source))
    die(run)
    close_abandoned(where, DEAD, "killed")
    assert ends(where) == [("ERROR", "policy_block")]
    summary = events(where)[-1]["run"]["summary"]
    assert (summary["calls_blocked"], summary["errors_total"]) == (1, 0)


def test_lines_that_are_no_events_keep_nobody_from_completing_the_record(
    own_home: Path, where: Places
) -> None:
    killed_host(own_home, where)
    (path,) = Path(journal_dir(where, "run")).iterdir()
    *lines, last = path.read_bytes().splitlines(keepends=True)
    start = next(line for line in lines if line.startswith(b'{"type":"tool_call_start"'))
    odd = json.loads(start)
    odd["ts"], odd["call"]["call_id"] = "soon", "odd"
    written = json.dumps(odd, separators=(",", ":")).encode() + b"\n"
    path.write_bytes(b"".join([*lines, written, b"x" * 9_000_000 + b"\n", last]))
    assert close_abandoned(where, DEAD, "killed") == 1
    ended = [line for line in path.read_bytes().splitlines() if b'"class":"unknown"' in line]
    assert len(ended) == CALLS


def test_every_file_of_a_rotated_journal_is_read(own_home: Path, where: Places) -> None:
    host = host_in(own_home, run_id="run", identity=WHO)
    run = host.open_run()
    run.journal.rotate_at(1)
    rulings = [host.begin(call(n), text(n)) for n in range(3)]
    host.finish(rulings[1], CallEnding(Status.OK, 1))
    host.flush()
    note_attendance(where, DEAD, Attendance("run", WHO, run.source))
    die(run)
    files = Path(journal_dir(where, "run"))
    assert len(list(files.iterdir())) > 3
    assert close_abandoned(where, DEAD, "killed") == 1
    lines = "".join(path.read_text() for path in files.iterdir()).splitlines()
    lost = [json.loads(line) for line in lines if '"class":"unknown"' in line]
    assert sorted(each["call"]["args_hash"] for each in lost) == sorted(
        sha256(text(n)).hexdigest() for n in (0, 2)
    )


def test_a_full_disk_is_tried_again(
    own_home: Path, where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_host(own_home, where)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "record", lambda *_: False)
        assert close_abandoned(where, DEAD, "killed") == 0
    assert attendances(where, DEAD)
    assert close_abandoned(where, DEAD, "killed") == 1
    assert ends(where) == [("ERROR", "unknown")] * CALLS


def test_the_journal_is_the_dead_one_s_own(own_home: Path, where: Places) -> None:
    """Who finds the calls does not matter: the chain, the source and the identity are the shim's."""
    killed_host(own_home, where)
    close_abandoned(where, DEAD, "killed")
    found = events(where)
    assert len({each["source"]["shim_id"] for each in found}) == 1
    assert [each["source"]["n"] for each in found] == list(range(1, len(found) + 1))
    assert {each["agent_id"] for each in found} == {"a"}
    Journal(journal_dir(where, "run"), found[0]["source"]["shim_id"], max_bytes=1 << 20).close()


def test_without_the_state_of_its_run_each_call_still_gets_its_end(
    own_home: Path, where: Places
) -> None:
    killed_host(own_home, where)
    for state in (own_home / "state" / "runs").iterdir():
        state.write_bytes(b"damaged")
    for _ in range(2):
        assert close_abandoned(where, DEAD, "killed") == 0
    assert ends(where) == [("ERROR", "unknown")] * CALLS
    assert events(where)[-1]["health"]["calls_open"] == CALLS
    assert attendances(where, DEAD) == []


def test_last_words_wait_for_the_lock_of_a_process_that_is_still_dying(
    own_home: Path, where: Places
) -> None:
    """Its pipes may be closed before its journal is, and nobody else may ever look again."""
    host = host_in(own_home, run_id="run", identity=WHO)
    run = host.open_run()
    host.begin(call(1), text(1))
    note_attendance(where, DEAD, Attendance("run", WHO, run.source))
    command = [sys.executable, "-X", "importtime", *last_words_command(where, DEAD)[1:]]
    finder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert finder.stderr is not None
    for line in finder.stderr:
        if "subluminal.core.runs.abandoned" in line:
            break  # everything is loaded: it looks now
    assert ends(where) == []
    die(run)
    finder.stderr.close()
    assert finder.wait(20) == 0
    assert ends(where) == [("ERROR", "unknown")]
