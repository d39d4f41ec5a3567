"""One host for many threads, tasks and forks: budgets exact, chains whole, nothing raises."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.policies import budget, bundle, deny, snapshot
from tests.adapters.records import calls_of, events_of
from tests.core.crowd import (
    SHARED,
    at_once,
    call,
    journalled,
    limited,
    many_calls,
    one_call,
)
from tests.hosts import host_in
from tests.journal.lines import verify_lines
from tests.processes import wait_until

from subluminal.canonical import encode
from subluminal.config.places import places
from subluminal.contracts.vocabulary import ReasonCode, Status
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding
from subluminal.core.runs.opening import Sharing
from subluminal.core.runs.run import Turn
from subluminal.core.threaded_host import ThreadedHost
from subluminal.errors import SubluminalError
from subluminal.journal import Journal
from subluminal.state.lock import ThreadedRunLock
from subluminal.state.run_state import RunState
from subluminal.wiring import open_host

# Python 3.12 and later warn of forks in a process with threads. That is what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

THREADS = 4
CALLS = 10_000


def kinds(events: list[dict[str, Any]]) -> Counter[str]:
    return Counter(event["type"] for event in events)


def seqs(events: list[dict[str, Any]]) -> list[int]:
    return sorted(c[0]["call"]["seq"] for c in calls_of(events))


def holds_files_of(directory: Path) -> bool:
    """Whether this process has a file below a directory open."""
    links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return any(str(directory) in os.readlink(link) for link in links if os.path.islink(link))


def test_four_threads_share_a_budget_exactly_and_one_whole_chain(own_home: Path) -> None:
    """Measured before: the chain broke in 10 of 10 homes, and `begin` itself raised."""
    limit = THREADS * CALLS // 2
    host = host_in(own_home, limited(limit), sharing=SHARED)
    assert sum(at_once([lambda: many_calls(host, CALLS)] * THREADS)) == limit
    host.close()
    lines = journalled(own_home)
    assert sum(b'"tool_call_end"' in line[:40] for line in lines) == THREADS * CALLS
    # Not the whole proof: for 120,000 events it takes longer than the calls did.
    (shim,) = {json.loads(line)["source"]["shim_id"] for line in lines}
    assert verify_lines(lines, shim) is None


def test_two_hosts_of_one_run_in_one_process_share_its_budget(own_home: Path) -> None:
    """Measured before: 501 of 500 passed."""
    hosts = [host_in(own_home, limited(500), sharing=SHARED) for _ in range(2)]
    passed = at_once([lambda host=host: many_calls(host, 400) for host in hosts])  # type: ignore[misc]
    for host in hosts:
        host.close()
    assert sum(passed) == 500
    events = events_of(own_home, threads=True)
    assert len({event["source"]["shim_id"] for event in events}) == 2
    assert seqs(events) == list(range(1, 801))
    assert (kinds(events)["run_start"], kinds(events)["run_end"]) == (1, 1)


def test_closing_one_host_leaves_the_other_its_lock(own_home: Path) -> None:
    """Closing any descriptor of the state file would free the lock of the whole process."""
    stays, goes = (host_in(own_home, limited(9), sharing=SHARED) for _ in range(2))
    state = stays.open_run().state
    goes.open_run()
    with state.locked():
        goes._runs.close()  # closes nothing yet: it has not left
        goes._open["run-1"].run.journal.close()
        goes._open.pop("run-1").run.state.close()
        script = (
            "import sys\n"
            "from subluminal.state.run_state import RunState\n"
            "from subluminal.state.errors import StateBusy\n"
            "state = RunState.open(sys.argv[1], 'run-1', wait_ms=1)\n"
            "try:\n    state.locked().__enter__()\n"
            "except StateBusy:\n    sys.exit(7)\n"
        )
        ran = subprocess.run([sys.executable, "-c", script, str(own_home / "state")], check=False)
    assert ran.returncode == 7
    stays.close()


def test_eight_processes_of_four_threads_share_a_budget_exactly(own_home: Path) -> None:
    processes, threads, calls, limit = 8, 4, 50, 700
    words = [sys.executable, "-m", "tests.core.crowd", str(own_home), f"{threads}", f"{calls}"]
    crowd = [
        subprocess.Popen(
            [*words, f"{limit}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(processes)
    ]
    try:
        for each in crowd:
            assert each.stdout
            assert each.stdout.readline() == "ready\n"
        for each in crowd:
            assert each.stdin
            each.stdin.write("go\n")
            each.stdin.flush()
        passed = [int(each.communicate()[0]) for each in crowd]
    finally:
        for each in crowd:
            each.kill()
            each.wait()
    assert sum(passed) == limit
    events = events_of(own_home, threads=True)
    assert seqs(events) == list(range(1, processes * threads * calls + 1))
    assert len({event["source"]["shim_id"] for event in events}) == processes


def test_threads_that_race_for_a_run_enter_it_once(own_home: Path) -> None:
    host = host_in(own_home, sharing=SHARED)
    at_once([lambda: many_calls(host, 1)] * 16)
    host.close()
    events = events_of(own_home, threads=True)
    assert kinds(events)["run_start"] == 1
    assert len({event["source"]["shim_id"] for event in events}) == 1


def test_a_run_with_an_open_call_is_not_left_to_make_room(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subluminal.core.runs.open_runs.MAX_RUNS", 4)
    host = host_in(own_home, sharing=SHARED)
    held = host.begin(call(), b"{}", "held")

    def use_many_runs() -> int:
        for n in range(40):
            ruling = host.begin(call(n=n), encode({"n": n}), f"run-{n % 10}")
            host.finish(ruling, CallEnding(Status.OK, 0))
        return 0

    at_once([use_many_runs] * 4)
    host.finish(held, CallEnding(Status.OK, 0))
    host.close()
    events = [e for e in events_of(own_home, threads=True) if e["run_id"] == "held"]
    expected = ["run_start", "tool_call_start", "tool_call_decision", "tool_call_end", "run_end"]
    assert [event["type"] for event in events] == expected


# Forks


def in_child(work: Any) -> int:
    """Runs `work` in a forked child, which leaves no trace in pytest; returns its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_has_a_journal_and_a_shim_id_of_its_own(own_home: Path) -> None:
    host = host_in(own_home, limited(100), sharing=SHARED)
    assert one_call(host, who="parent")
    begun = host.begin(call(who="both"), encode({"who": "both"}))

    def child() -> None:
        host.finish(begun, CallEnding(Status.OK, 0))  # the parent's to end
        assert one_call(host, who="child")
        host.close()

    assert in_child(child) == 0
    host.finish(begun, CallEnding(Status.OK, 0))
    assert one_call(host, who="parent again")
    host.close()
    events = events_of(own_home, threads=True)
    shims = {e["source"]["shim_id"] for e in events}
    assert len(shims) == 2
    assert seqs(events) == [1, 2, 3, 4]
    assert kinds(events)["tool_call_end"] == 4
    assert kinds(events)["run_start"] == 1
    assert list((own_home / "state" / "processes").iterdir()) == []


def test_a_child_that_never_uses_the_host_holds_none_of_the_parents_files(own_home: Path) -> None:
    host = host_in(own_home, sharing=SHARED)
    assert one_call(host)

    def child() -> None:
        assert not holds_files_of(own_home / "journal")

    assert in_child(child) == 0
    host.close()


def test_forks_under_load_leave_every_chain_whole(own_home: Path) -> None:
    """Other threads hold every lock there is at the moment of the fork."""
    forks, calls = 12, 20
    host = host_in(own_home, sharing=SHARED)
    over = threading.Event()

    def keep_calling() -> int:
        made = 0
        while not over.is_set():
            one_call(host, n=made)
            made += 1
        return made

    def fork_again_and_again() -> int:
        try:
            for _ in range(forks):
                assert in_child(lambda: (many_calls(host, calls), host.close())) == 0
        finally:
            over.set()
        return forks * calls

    made = sum(at_once([keep_calling, keep_calling, keep_calling, fork_again_and_again]))
    host.close()
    events = events_of(own_home, threads=True)
    assert seqs(events) == list(range(1, made + 1))
    assert len({event["source"]["shim_id"] for event in events}) == forks + 1


# Event loops


def test_tasks_of_an_event_loop_share_a_host(own_home: Path) -> None:
    host = host_in(own_home, limited(50), sharing=SHARED)

    async def many(count: int) -> int:
        passed = 0
        for n in range(count):
            passed += one_call(host, n=n)
            await asyncio.sleep(0)
        return passed

    async def main() -> int:
        return sum(await asyncio.gather(*(many(25) for _ in range(4))))

    assert asyncio.run(main()) == 50
    host.close()
    assert seqs(events_of(own_home)) == list(range(1, 101))


def test_an_event_loop_waits_for_a_held_lock_no_longer_than_it_chose(own_home: Path) -> None:
    """The holder lets go only after `begin` has returned, so a wait without a bound would hang."""
    policy = snapshot(budget(9), decision_on_error="BLOCK")
    host = host_in(own_home, policy, sharing=Sharing(threads=True, wait_ms=2))
    host.open_run()
    holder = RunState.open(str(own_home / "state"), "run-1", threads=True)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with holder.locked():
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    async def main() -> Any:
        return host.begin(call(), b"{}")

    ruling = asyncio.run(main())
    release.set()
    thread.join()
    holder.close()
    assert (ruling.is_allowed, ruling.decision.reason_code) == (False, ReasonCode.EVALUATION_ERROR)
    host.finish(ruling, CallEnding(Status.ERROR, 0))
    assert one_call(host, n=1), "and goes on when the lock is free"
    host.close()
    (ended,) = [json.loads(line)["run"] for line in journalled(own_home) if b'"run_end"' in line]
    assert ended["summary"]["calls_total"] == 2, "what could not be counted then is counted now"


def test_an_event_loop_waits_for_a_busy_journal_no_longer_than_it_chose(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread's write hangs on a slow disk."""
    policy = snapshot(budget(9), decision_on_error="BLOCK")
    host = host_in(own_home, policy, sharing=Sharing(threads=True, wait_ms=2))
    host.open_run()
    writing, release = threading.Event(), threading.Event()
    write = Journal.write_chained

    def slow_write(self: Journal, *lines: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            writing.set()
            release.wait()
        write(self, *lines)

    monkeypatch.setattr(Journal, "write_chained", slow_write)
    thread = threading.Thread(target=lambda: host.begin(call(n=1), encode({"n": 1})))
    thread.start()
    writing.wait()
    ruling = host.begin(call(n=2), encode({"n": 2}))
    release.set()
    thread.join()
    reason = ruling.decision.reason_code
    assert (ruling.is_allowed, reason) == (False, ReasonCode.JOURNAL_UNAVAILABLE)
    host.close()


def test_a_host_without_a_loop_looks_at_its_policies_by_itself(own_home: Path) -> None:
    host = host_in(own_home, sharing=SHARED)
    assert isinstance(host, ThreadedHost)
    ticks: list[int] = []
    host._policies.poll = lambda mono_ms, *, force=False: ticks.append(mono_ms) or []  # type: ignore[method-assign,func-returns-value]
    at_once([lambda: many_calls(host, 20)] * 4)
    assert ticks
    host.close()


# Policies from files, several sessions, interrupts, closing


def opened(home: Path, place: Path, **options: Any) -> Host:
    """A host as a door opens it, with the policies that stand on disk."""
    where = places({"SUB_HOME": str(home)})
    options = {"environ": {"SUB_RUN_ID": "run-1"}, "sharing": SHARED, **options}
    return open_host(where, cwd=str(place), **options)


def write_policy(home: Path, *rules: dict[str, Any]) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "policy.yaml").write_text(json.dumps(bundle(*rules)))


def test_no_thread_is_decided_before_the_policies_are_known(own_home: Path, tmp_path: Path) -> None:
    """The first host holds its calls until the policy is compiled; the others find it compiled."""
    write_policy(own_home, deny("*"))
    for _ in range(15):
        host = opened(own_home, tmp_path)
        assert sum(at_once([lambda host=host: many_calls(host, 5)] * 4)) == 0  # type: ignore[misc]
        host.close()


def test_a_policy_that_comes_while_threads_enter_runs_holds_in_all_of_them(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("core.threaded_host.TICK_EVERY_MS", "core.policies.watching.LOOK_EVERY_MS"):
        monkeypatch.setattr(f"subluminal.{module}", 0)
    host = opened(own_home, tmp_path, environ={})
    raised: list[Exception] = []

    def use_many_runs() -> int:
        for n in range(40):
            try:
                ruling = host.begin(call(n=n), encode({"n": n}), f"run-{n % 20}")
                host.finish(ruling, CallEnding(Status.OK, 0))
            except Exception as error:  # noqa: BLE001 - told below
                raised.append(error)
            if n == 5:
                write_policy(own_home, deny("*"))
        return 0

    at_once([use_many_runs] * 4)
    wait_until(lambda: not one_call(host), "the policy in force")
    assert raised == []
    refused = [host.begin(call(), b"{}", f"run-{n}").is_allowed for n in range(20)]
    assert refused == [False] * 20
    host.close()


def test_policies_do_not_change_while_a_run_is_entered(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the run would be entered under policies that are going, and keep them."""
    host = host_in(own_home, sharing=Sharing(threads=True, wait_ms=5))
    polls: list[int] = []
    monkeypatch.setattr(host._policies, "poll", lambda at, *, force=False: polls.append(at) or [])
    entering, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        entering.set()
        go_on.wait()

    monkeypatch.setattr("subluminal.core.runs.open_runs.note_attendance", slow)
    thread = threading.Thread(target=host.open_run)
    thread.start()
    entering.wait()
    host.tick(1)
    assert polls == []
    go_on.set()
    thread.join()
    host.tick(2)
    assert polls == [2]
    host.close()


class Interrupt(BaseException):
    """What a signal handler raises between two steps of somebody else's code."""


@pytest.mark.parametrize("lock", [ThreadedRunLock, Turn])
def test_an_interrupt_that_ends_a_turn_too_early_leaves_no_lock_behind(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, lock: type
) -> None:
    host = host_in(own_home, limited(9), sharing=Sharing(threads=True, wait_ms=50))
    assert one_call(host, n=1)

    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise Interrupt

    monkeypatch.setattr(lock, "__exit__", interrupted)
    with pytest.raises(Interrupt):
        host.begin(call(n=2), encode({"n": 2}))
    assert one_call(host, n=3), "the thread takes over the lock that it left"
    assert at_once([lambda: many_calls(host, 1)] * 2) == [1, 1], "and others find it free"
    assert host._open["run-1"].open_calls == 0
    host.close()


def test_a_child_that_was_forked_while_a_run_was_entered_holds_no_journal(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = host_in(own_home, sharing=SHARED)
    entering, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        entering.set()
        go_on.wait()

    monkeypatch.setattr("subluminal.core.runs.open_runs.note_attendance", slow)
    thread = threading.Thread(target=lambda: one_call(host))
    thread.start()
    entering.wait()

    def child() -> None:
        assert not holds_files_of(own_home / "journal")

    assert in_child(child) == 0
    go_on.set()
    thread.join()
    host.close()


def test_hosts_that_are_opened_at_once_agree_on_their_run_and_their_machine(tmp_path: Path) -> None:
    for n in range(10):
        found: list[tuple[str, str]] = []

        def open_one(home: Path = tmp_path / f"home-{n}", found: Any = found) -> int:
            host = opened(home, tmp_path, environ={})
            found.append((host.run_id, host._runs._machine_id))
            host.close()
            return 0

        at_once([open_one] * 4)
        assert len(set(found)) == 1


def test_calls_under_way_end_after_the_host_was_closed(own_home: Path) -> None:
    host = host_in(own_home, limited(9), sharing=SHARED)
    begun = host.begin(call(), b"{}")
    host.close()
    host.close()
    host.finish(begun, CallEnding(Status.ERROR, 0))
    with pytest.raises(SubluminalError, match="closed"):
        host.begin(call(), b"{}")
    assert kinds([json.loads(line) for line in journalled(own_home)])["tool_call_end"] == 1
    assert not (own_home / "reports").exists()
    assert not holds_files_of(own_home / "journal")


def test_a_call_that_many_threads_end_has_one_end(own_home: Path) -> None:
    """A stream may be closed by its reader and by the collector."""
    host = host_in(own_home, sharing=Sharing(threads=True))
    rulings = [host.begin(call(n=n), encode({"n": n})) for n in range(20)]

    def end_all() -> int:
        for ruling in rulings:
            host.finish(ruling, CallEnding(Status.OK, 0))
        return len(rulings)

    at_once([end_all] * 4)
    assert host._open["run-1"].open_calls == 0
    host.close()
    assert kinds(events_of(own_home))["tool_call_end"] == 20
