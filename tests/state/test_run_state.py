"""The facts that the shims of a run share, with real processes where it matters (shared-runs)."""

import os
import random
import signal
import subprocess
import sys
from functools import partial

import pytest
from tests.state.conftest import until
from tests.state.worker import PAIR_KEY, RECENT_NAMES, WINDOW_KEY, churned, patiently, recent_key

from subluminal import clock
from subluminal.contracts.counters import CellKind
from subluminal.contracts.vocabulary import RunStatus
from subluminal.state import layout, run_state
from subluminal.state.processes import start_time
from subluminal.state.run_state import RunState, Total, Totals

PAIR, WINDOW, RECENT, _ = CellKind


def test_eight_processes_share_one_budget_and_one_sequence_exactly(state, start):
    workers = [start("increment") for _ in range(8)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.go()
    taken = [int(seq) for worker in workers for seq in worker.hear().split()]
    assert sorted(taken) == list(range(1, 8_001))
    assert state.counters.read(PAIR, PAIR_KEY) == (8_000,)
    assert state.totals() == Totals(8_000, 8_000, 0, 0, 0)


def test_eight_processes_that_create_a_run_at_once_share_it(state_dir, start):
    workers = [start("create", "new") for _ in range(8)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.go()
    answers = [worker.hear().split() for worker in workers]
    assert len({inode for inode, _, _ in answers}) == 1
    assert sorted(int(seq) for _, seq, _ in answers) == list(range(1, 9))
    assert sorted(first for _, _, first in answers) == ["False"] * 7 + ["True"]
    assert len(os.listdir(os.path.join(state_dir, "runs"))) == 1


def test_processes_killed_while_writing_tear_nothing_and_block_nobody(state, start):
    chance = random.Random(4)
    with state.locked():
        for _ in range(layout.RECENT.capacity):
            state.counters.write(churned(state.take_seq()))
    survivor, n = start("churn"), layout.RECENT.capacity
    assert survivor.hear() == "ready"
    for _ in range(24):
        victim = start("churn")
        assert victim.hear() == "ready"
        let_them_write(state, steps=chance.randrange(20, 400))
        victim.signal(signal.SIGKILL)
        n = patiently(state, partial(check_churned, state, n))
        victim.end()
    let_them_write(state, steps=100)


def let_them_write(state, steps):
    """Watches, without the lock, until this many more steps are made."""
    target = state.counters.read(PAIR, PAIR_KEY)[0] + steps
    until(lambda: state.counters.read(PAIR, PAIR_KEY)[0] >= target, f"{steps} more steps")


def check_churned(state, before):
    """Every cell is what one step wrote, whole; returns the last step's number."""
    n, inverse = state.counters.read(PAIR, PAIR_KEY)
    assert inverse == ~n
    assert n >= before
    window = state.counters.read(WINDOW, WINDOW_KEY)
    assert window == churned(window[0])[1][2]
    kept = 0
    for name in range(RECENT_NAMES):
        cell = state.counters.read(RECENT, recent_key(name))
        if cell:
            kept += 1
            assert cell == churned(cell[1])[2][2]
            assert cell[0] == name
    # A kill in the middle of an insertion costs at most the cell that was being replaced.
    assert layout.RECENT.capacity - 24 <= kept <= layout.RECENT.capacity
    return n


def test_a_run_starts_once(state, state_dir):
    assert state.started_at() is None
    with state.locked():
        assert state.claim_start(1_700_000_000_000, 5)
        assert not state.claim_start(1_700_000_000_001, 6)
    with RunState.open(state_dir, "run") as later:
        assert later.started_at() == clock.Now(1_700_000_000_000, 5)


def test_totals_add_up(state):
    with state.locked():
        for total, times in zip(Total, [5, 3, 2, 1], strict=True):
            for _ in range(times):
                state.count(total)
    assert state.totals() == Totals(10, 5, 3, 2, 1)


def test_a_terminated_run_stays_terminated_for_everyone(state, state_dir):
    assert state.terminated() is None
    with state.locked():
        assert state.terminate("BUDGET_EXCEEDED", "too many calls")
        assert not state.terminate("KILL_SWITCH", "later")
    with RunState.open(state_dir, "run") as later:
        assert later.terminated() == ("BUDGET_EXCEEDED", "too many calls")


def test_the_last_shim_out_ends_the_run_and_the_next_one_in_reopens_it(state):
    own = os.getpid(), start_time(os.getpid())
    with state.locked():
        assert state.attach("one", *own) is False
        assert state.attach("two", *own) is False
        assert {shim.shim_id for shim in state.live_shims()} == {"one", "two"}
        assert state.detach("one") == 1
        assert state.detach("two") == 0
        assert state.mark_ended()
        assert not state.mark_ended()
        assert state.ended()
        assert state.attach("three", *own) is True
        assert not state.ended()
        assert state.mark_ended()


def test_the_worst_failure_is_remembered(state):
    assert state.failure() is None
    with state.locked():
        for noted, worst in [
            (RunStatus.CANCELLED, RunStatus.CANCELLED),
            (RunStatus.FAILED, RunStatus.FAILED),
            (RunStatus.CANCELLED, RunStatus.FAILED),
        ]:
            state.note_failure(noted)
            assert state.failure() is worst
        with pytest.raises(ValueError):
            state.note_failure(RunStatus.SUCCEEDED)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.take_seq(),
        lambda state: state.count(Total.ERRORS),
        lambda state: state.claim_start(1, 1),
        lambda state: state.terminate("A", "b"),
        lambda state: state.attach("a", 1, 1),
        lambda state: state.detach("a"),
        lambda state: state.mark_ended(),
        lambda state: state.note_failure(RunStatus.FAILED),
    ],
    ids=lambda change: change.__code__.co_names[0],
)
def test_every_change_needs_the_lock(state, change):
    with pytest.raises(RuntimeError, match="only under its lock"):
        change(state)


def test_a_run_that_is_pruned_while_it_is_opened_is_made_anew(state_dir, state, monkeypatch):
    path, opened = state.path, []
    real = run_state.open_or_create

    def open_then_lose(*where):
        opened.append(real(*where))
        if len(opened) == 1:
            os.unlink(path)
        return opened[-1]

    monkeypatch.setattr(run_state, "open_or_create", open_then_lose)
    with RunState.open(state_dir, "run") as anew, anew.locked():
        assert anew.take_seq() == 1
    assert len(opened) == 2


def test_a_run_whose_lock_is_held_by_a_stopped_process_can_still_be_opened(state, start, state_dir):
    holder = start("hold")
    assert holder.hear() == "held"
    holder.signal(signal.SIGSTOP)
    with RunState.open(state_dir, "run") as other:
        assert other.terminated() is None


def test_the_hot_path_loads_nothing_heavy():
    """A shim is started once per server, so every start pays for its imports (fast-start)."""
    heavy = {"asyncio", "json", "logging", "msgspec", "subprocess", "threading", "yaml"}
    code = "import sys, subluminal.state.run_state; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "subluminal.state.table" in loaded
    assert not heavy & set(loaded)


def test_what_is_owed_is_added_with_the_next_count(state):
    state.owe(Total.CALLS_BLOCKED)
    state.owe(Total.ERRORS)
    assert state.totals().calls_total == 0
    with state.locked():
        state.count(Total.CALLS_ALLOWED)
        state.count(Total.CALLS_ALLOWED)
    assert state.totals() == (3, 2, 1, 0, 1)


def test_what_is_owed_is_added_at_the_latest_when_one_leaves(state):
    state.owe(Total.CALLS_THROTTLED)
    with state.locked():
        state.detach("nobody")
    assert state.totals() == (1, 0, 0, 1, 0)
