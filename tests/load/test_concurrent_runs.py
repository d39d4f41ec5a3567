"""A hundred runs at once, some of them killed: no event is lost, no process is left.

Ten jobs in the default suite; `make torture` sets TORTURE and runs a hundred, all at the same time.
"""

import os
import signal
import sys
import time
from collections import defaultdict

import pytest
from tests.load import jobs
from tests.load.artifacts import check_artifact, same_events
from tests.load.crowd import Crowd, table
from tests.load.records import Record
from tests.requirements import requirement

from subluminal.state.pruning import prune

JOBS = 100 if os.environ.get("TORTURE") else 10
SEED = 20261115
FAR_MS = 3_600_000


@pytest.fixture
def crowd(tmp_path, own_home, subreaper):
    house = Crowd(tmp_path, own_home)
    house.running = []
    yield house
    house.clean()


def wanted_status(job, record):
    if record.actions()["TERMINATE_RUN"]:
        return "TERMINATED"
    return {"SIGKILL": "FAILED", "SIGTERM": "CANCELLED"}.get(job.blow, "SUCCEEDED")


def wanted_code(job, record):
    """Returns the exit code of `--strict`: a run with a refused call fails, however its agent ended."""
    if record.refused():
        return 3
    return 128 + getattr(signal, job.blow) if job.is_agent_killed else 0


@requirement("001-16H:concurrent")
@pytest.mark.timeout(900)
def test_many_runs_at_once(crowd, installed):
    planned = jobs.plan(JOBS, SEED)
    descriptors = len(os.listdir("/proc/self/fd"))
    shared_memory = sorted(os.listdir("/dev/shm"))
    clock = [time.monotonic()]

    crowd.begin(planned, installed)
    crowd.wait_ready()
    clock.append(time.monotonic())
    before = crowd.measure()
    crowd.say("go")
    crowd.wait_done()
    clock.append(time.monotonic())
    after = crowd.measure()
    crowd.say("leave")
    crowd.wait_over()
    clock.append(time.monotonic())

    report(planned, before, after, clock)
    assert crowd.alive() == []
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert sorted(os.listdir("/dev/shm")) == shared_memory
    check_leaks(before, after)
    check_records(crowd)
    check_state(crowd)


def check_leaks(before, after):
    """Checks that no process of ours has more descriptors after the calls than before."""
    stayed = [
        pid
        for pid in before
        if pid in after and before[pid].role in ("shim", "deputy", "warden", "sub run")
    ]
    assert len(stayed) >= JOBS
    for pid in stayed:
        assert after[pid].role == before[pid].role
        assert after[pid].descriptors <= before[pid].descriptors, (pid, before[pid], after[pid])


def check_state(crowd):
    """Checks that no shim is attached to any run, so that all state files can be removed."""
    state = crowd.home / "state"
    assert list((state / "processes").iterdir()) == []
    assert prune(str(state), older_than_ms=-FAR_MS) == JOBS
    assert list((state / "runs").iterdir()) == []


def check_records(crowd):
    events = defaultdict(list)
    for event in crowd.events():
        events[event["run_id"]].append(event)
    assert sorted(events) == sorted(each.run_id() for each in crowd.running)
    for each in crowd.running:
        job = each.job
        record = Record(events[each.run_id()])
        assert each.process.returncode == wanted_code(job, record), (job.number, each.err())
        record.check_order()
        record.check_totals(wanted_status(job, record))
        record.check_decisions(server_is_killed=job.blow == "server")
        record.check_breaker(jobs.SHIMS)
        record.check_rate()
        record.check_answers(each.answers(), is_killed=job.is_agent_killed)
        check_artifact(each.place / "artifact", record.events)
        same_events(each.place / "events", record.events)
        if not job.is_agent_killed:
            assert len(each.answers()) == jobs.CALLS
        if job.blow is None:
            assert len(record.starts) == jobs.CALLS
        if not job.is_real:
            check_executed(each, record)


def check_executed(each, record):
    """Checks that the sample servers executed the allowed calls, except those lost by a kill."""
    for number in range(jobs.SHIMS):
        done = len((each.place / f"executed-{number}").read_text().split())
        allowed = record.allowed_at(f"sample-{number}")
        assert done <= allowed
        if each.job.blow is None:
            assert done == allowed


def report(planned, before, after, clock):
    hurt = [job.blow for job in planned if job.blow]
    print(
        f"\n{len(planned)} runs at once, {sum(job.is_real for job in planned)} of them on real servers,"
        f" {len(hurt)} hurt; up after {clock[1] - clock[0]:.1f} s, calls done after"
        f" {clock[2] - clock[1]:.1f} s more, gone after {clock[3] - clock[2]:.1f} s\n"
        f"before the calls\n{table(before)}\nafter them\n{table(after)}",
        file=sys.stderr,
    )
