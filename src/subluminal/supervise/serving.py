"""Turns two forks of the shim into deputy and warden: own session, no signals, own descriptors.

`deputy` and `warden` have the loops that they then run.
"""

import gc
import os

from subluminal.supervise.deputy import DeputyLoop
from subluminal.supervise.signals import posix, shield
from subluminal.supervise.warden import WardenLoop
from subluminal.system import pipes
from subluminal.system.adoption import become_subreaper, set_name, signal_at_parents_death

WARDEN_NAME = b"sub-warden"
DEPUTY_NAME = b"sub-deputy"
NAMES = (DEPUTY_NAME.decode(), WARDEN_NAME.decode())
"""The names of deputy and warden in `ps`; at most 15 bytes, and only on Linux."""


class Inherited:
    """What a fork of the shim needs to know."""

    __slots__ = (
        "client",
        "keep_ignored",
        "life",
        "mark",
        "mask",
        "orders",
        "reports",
        "shim",
        "stdio",
    )

    def __init__(
        self,
        *,
        orders: int,
        reports: int,
        life: int,
        stdio: tuple[int, int, int],
        mark: str,
        mask: set[int],
        keep_ignored: tuple[int, ...],
    ) -> None:
        self.shim = os.getpid()
        self.client = os.getppid()
        self.orders = orders
        self.reports = reports
        self.life = life
        """End of a pipe that the shim holds open while it lives."""
        self.stdio = stdio
        self.mark = mark
        """Value of SHIM_ID in the environment of the upstream."""
        self.mask = mask
        """The shim's blocked signals."""
        self.keep_ignored = keep_ignored


def serve(given: Inherited) -> None:
    """Runs the deputy, which forks the warden. Never returns, so that no code runs twice."""
    try:
        gc.disable()
        adopts = become_subreaper()
        # If the upstream has stopped the deputy, the shim's death lets it go on.
        signal_at_parents_death(posix.SIGCONT)
        news, tell = os.pipe()
        deputy_life, alive = os.pipe()
        # Forked before anything else is done: the upstream waits for the warden.
        warden = os.fork()
        if warden == 0:
            _serve_as_warden(given, tell, deputy_life)
        _leave_the_shim(given, DEPUTY_NAME, given.life, news, alive)
        DeputyLoop(
            warden,
            shim=given.shim,
            client=given.client,
            news=news,
            life=given.life,
            mark=given.mark,
            adopts=adopts,
        ).run()
    finally:
        os._exit(0)


def _serve_as_warden(given: Inherited, news: int, deputy_life: int) -> None:
    """Runs the warden from fork to exit."""
    status = 70  # a bug of ours: the shim sees the report pipe end without `gone`, and sweeps
    try:
        needed = (given.orders, given.reports, *given.stdio, news, deputy_life)
        _leave_the_shim(given, WARDEN_NAME, *needed)
        pipes.widen(given.stdio[1])
        for fd in (given.orders, given.reports, news):
            os.set_blocking(fd, False)
        adopts = become_subreaper()
        WardenLoop(
            given.orders,
            given.reports,
            given.stdio,
            news=news,
            deputy=deputy_life,
            shim=given.shim,
            mark=given.mark,
            adopts=adopts,
            keep_ignored=given.keep_ignored,
        ).run()
        status = 0
    finally:
        os._exit(status)


def _leave_the_shim(given: Inherited, name: bytes, *needed: int) -> None:
    """Leaves the shim's session, and gives up its signals and descriptors."""
    os.setsid()
    shield()
    posix.pthread_sigmask(posix.SIG_SETMASK, given.mask)
    _keep_only(*needed)
    set_name(name)


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
