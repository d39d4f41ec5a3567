"""Turns a fork of the shim into a warden: own session, no signals, only its own descriptors.

`warden` has the loop that it then runs. Without /proc or prctl(2), the steps that need them are
left out.
"""

import fcntl
import gc
import os

from subluminal.supervise.system import become_subreaper, posix, shield
from subluminal.supervise.warden import WardenLoop

NAME = b"sub-warden"
"""The warden's name in `ps`; at most 15 bytes."""
PIPE_BYTES = 256 * 1024
"""Size of the upstream's output pipe: an 8 MiB result takes a third less time."""


def serve(
    orders: int,
    reports: int,
    stdio: tuple[int, int, int],
    *,
    mask: set[int],
    keep_ignored: tuple[int, ...],
) -> None:
    """Runs the warden from fork to exit. Never returns, so that no code of the shim runs twice."""
    status = 70  # a bug of ours: the shim sees the report pipe end without `gone`, and sweeps
    try:
        shim = os.getppid()
        os.setsid()
        shield()
        posix.pthread_sigmask(posix.SIG_SETMASK, mask)
        gc.disable()
        _keep_only(orders, reports, *stdio)
        _set_name()
        _widen(stdio[1])
        for fd in (orders, reports):
            os.set_blocking(fd, False)
        adopts = become_subreaper()
        WardenLoop(
            orders, reports, stdio, shim=shim, adopts=adopts, keep_ignored=keep_ignored
        ).run()
        status = 0
    finally:
        os._exit(status)


def _keep_only(*needed: int) -> None:
    """Closes the shim's descriptors: its client waits until every copy of its output is closed."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number, inheritable=False)
    for fd in _open_descriptors():
        if fd > 2 and fd not in needed:
            _close(fd)


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return list(range(256))  # a bare chroot; the shim has few descriptors open so early


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return  # the descriptor that listed the directory


def _set_name() -> None:
    """Sets the name by which `ps` and `sub doctor` tell the warden from its shim (Linux only)."""
    try:
        fd = os.open("/proc/self/comm", os.O_WRONLY)
    except OSError:
        return
    os.write(fd, NAME)
    os.close(fd)


def _widen(fd: int) -> None:
    """Enlarges a pipe, so that large results need fewer reads. The system may refuse."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (AttributeError, OSError):
        return
