"""From a fork of the shim to a warden: its own session, no signals, no descriptors but its own.

What the warden then does is in `warden`. On a system without /proc or prctl it does what it can.
"""

import fcntl
import gc
import os

from subluminal.supervise.prctl import become_subreaper
from subluminal.supervise.signals import posix, shield
from subluminal.supervise.warden import WardenLoop

NAME = b"sub-warden"
"""What `ps` shows; at most 15 bytes."""
PIPE_BYTES = 256 * 1024
"""For the upstream's output: saves a third of the time of an 8 MiB result."""


def serve(
    orders: int,
    reports: int,
    stdio: tuple[int, int, int],
    *,
    mask: set[int],
    keep_ignored: tuple[int, ...],
) -> None:
    """Is the warden, from fork to exit: never returns, so no code of the shim runs twice."""
    status = 70  # a bug of ours: the shim sees the reports end without `gone`, and sweeps
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
    """Closes what the shim had open: its client waits for the end of the shim's output."""
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
        return list(range(256))  # a bare chroot: the shim has few open so early


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return  # the listing's own


def _set_name() -> None:
    """Tells a warden from its shim in `ps`, and for `sub doctor`; only Linux can."""
    try:
        fd = os.open("/proc/self/comm", os.O_WRONLY)
    except OSError:
        return
    os.write(fd, NAME)
    os.close(fd)


def _widen(fd: int) -> None:
    """Large results take fewer turns through a larger pipe; a system may refuse."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (AttributeError, OSError):
        return
