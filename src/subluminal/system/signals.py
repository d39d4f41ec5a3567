"""Waiting for signals, and whether the terminal sent them."""

import os
import signal
from collections.abc import Iterable
from typing import Any

from subluminal.system import LINUX

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals with which a client ends its servers and hooks."""

_FROM_KEYS = (signal.SIGINT, signal.SIGQUIT)


def await_signal(watched: Iterable[int]) -> tuple[int, bool]:
    """Waits for one of these blocked signals.

    Returns the signal, and True if the terminal has sent it to the whole foreground group.
    """
    if LINUX:
        came = signal.sigwaitinfo(watched)
        # A positive code is the kernel's.
        return came.si_signo, came.si_code > 0
    number = signal.sigwait(watched)
    return number, number in _FROM_KEYS and _in_foreground()


def take_pending(watched: Iterable[int]) -> bool:
    """Takes one of these blocked signals, if any has arrived; returns False if none has."""
    arrived = signal.sigpending() & set(watched)
    if arrived:
        signal.sigwait(arrived)
    return bool(arrived)


def _in_foreground() -> bool:
    """Returns True if our process group is the one that the terminal's keys signal."""
    try:
        fd = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False  # there is no terminal
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(fd)


def wake_on_signals() -> int:
    """Returns a descriptor from which one byte can be read for each signal that arrived.

    A hangup stays ignored if our parent ignored it: `nohup` means that.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for signum in STOP_SIGNALS:
        if signum != signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, _noted)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return read_end


def _noted(_signum: int, _frame: Any) -> None:
    """Does nothing. Without a handler, the signal would not be written to the descriptor."""
