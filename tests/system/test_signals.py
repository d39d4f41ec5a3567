"""Signals are taken one by one, with and without Linux's calls."""

import signal
import threading

import pytest

from subluminal.system import signals
from subluminal.system.signals import await_signal, take_pending

WATCHED = (signal.SIGUSR1, signal.SIGINT)


def send(number):
    """Signals this thread: the runner's other threads do not block the signal."""
    signal.pthread_kill(threading.get_ident(), number)


@pytest.fixture
def blocked():
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@pytest.mark.parametrize("linux", [True, False], ids=["linux", "plain"])
def test_a_signal_of_another_process_is_not_the_terminal_s(blocked, linux, monkeypatch):
    monkeypatch.setattr(signals, "LINUX", linux)
    send(signal.SIGUSR1)
    assert await_signal(WATCHED) == (signal.SIGUSR1, False)


def test_keys_signal_the_group_in_the_foreground(blocked, monkeypatch):
    monkeypatch.setattr(signals, "LINUX", False)
    for foreground in (True, False):
        monkeypatch.setattr(signals, "_in_foreground", lambda is_there=foreground: is_there)
        send(signal.SIGINT)
        assert await_signal(WATCHED) == (signal.SIGINT, foreground)
        send(signal.SIGUSR1)
        assert await_signal(WATCHED) == (signal.SIGUSR1, False), "no key sends it"


def test_a_pending_signal_is_taken_once(blocked):
    assert not take_pending(WATCHED)
    send(signal.SIGUSR1)
    assert take_pending(WATCHED)
    assert not take_pending(WATCHED)
