"""The lock is bounded, and the kernel frees it whatever happens to its holder."""

import signal
import threading
import time
from pathlib import Path

import pytest
from tests.state.conftest import until

from subluminal.state import layout
from subluminal.state.errors import StateBusy
from subluminal.state.lock import LOCK_WAIT_MS
from subluminal.state.storage import open_or_create


def test_a_stopped_holder_does_not_freeze_the_others(state, start):
    holder = start("hold")
    assert holder.hear() == "held"
    holder.signal(signal.SIGSTOP)
    until(lambda: is_stopped(holder.pid), "the holder stops")
    for _ in range(2):
        with pytest.raises(StateBusy, match="for over 50 ms"), state.locked():
            raise AssertionError("two processes hold the lock")
    assert not state.locked().held
    holder.signal(signal.SIGCONT)
    holder.go()
    assert holder.process.wait() == 0
    with state.locked():
        assert state.take_seq() == 1


def test_a_holder_without_a_cpu_is_waited_for(state, start):
    """On an overloaded machine a holder may lose its CPU for more than 50 ms; no call is refused."""
    holder = start("toil")
    assert holder.hear() == "held"
    timer = threading.Timer(4 * LOCK_WAIT_MS / 1000, holder.signal, [signal.SIGUSR1])
    timer.start()
    begun = time.monotonic()
    with state.locked():
        assert state.take_seq() == 1
    assert time.monotonic() - begun > LOCK_WAIT_MS / 1000
    timer.join()
    assert holder.process.wait() == 0


def test_a_holder_that_never_lets_go_is_given_up(state, start, monkeypatch):
    monkeypatch.setattr("subluminal.state.lock.STARVED_WAIT_MS", 200)
    holder = start("toil")
    assert holder.hear() == "held"
    with pytest.raises(StateBusy), state.locked():
        raise AssertionError("two processes hold the lock")
    holder.signal(signal.SIGUSR1)
    assert holder.process.wait() == 0


def is_stopped(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_a_killed_holder_frees_the_lock(state, start):
    holder = start("hold")
    assert holder.hear() == "held"
    holder.signal(signal.SIGKILL)
    holder.process.wait()
    with state.locked():
        assert state.take_seq() == 1


def test_a_forked_child_neither_shares_nor_keeps_its_parents_lock(state, start):
    parent = start("die_with_a_child")
    assert parent.hear() == "busy"
    parent.signal(signal.SIGKILL)
    parent.process.wait()
    with state.locked():
        assert state.take_seq() == 1
    parent.go()
    assert parent.hear() == ""


@pytest.fixture
def words(state_dir):
    file = open_or_create(state_dir, "run")
    yield file.words
    file.close()


def test_a_waiter_asks_to_go_first_and_takes_that_back_when_it_was_served(words, start):
    holder = start("hold")
    assert holder.hear() == "held"
    waiter = start("churn")
    assert waiter.hear() == "ready"
    until(lambda: words[layout.W_WANTED] == waiter.pid, "the waiter asks")
    holder.go()
    until(lambda: words[layout.W_SEQ] > 0 and words[layout.W_WANTED] == 0, "it is served")


def test_a_waiter_that_gives_up_takes_back_what_it_asked(state, words, start):
    assert start("hold").hear() == "held"
    with pytest.raises(StateBusy), state.locked():
        pass
    assert words[layout.W_WANTED] == 0


def test_a_process_that_asked_to_go_first_and_died_holds_nobody_up_twice(state, words):
    words[layout.W_WANTED] = 2**22 + 1
    with state.locked():
        assert state.take_seq() == 1
    assert words[layout.W_WANTED] == 0


def test_the_lock_is_free_after_an_exception(state, start):
    with pytest.raises(KeyError), state.locked():
        raise KeyError
    holder = start("hold")
    assert holder.hear() == "held"


def test_the_lock_is_not_re_entrant(state):
    with state.locked():
        with pytest.raises(RuntimeError, match="re-entrant"), state.locked():
            pass
        assert state.take_seq() == 1
