"""The shim's side of the warden: fork it, give orders, read reports.

Knows nothing of MCP. Not to be called from a signal handler: an order may be longer than a pipe
takes at once, and two halves must not mix.
"""

import gc
import os
import select
import time

from subluminal.supervise.processes import process
from subluminal.supervise.serving import serve
from subluminal.supervise.signals import SHIELDED, ignored_now, posix
from subluminal.supervise.wire import (
    GONE,
    Frames,
    Order,
    Report,
    Signal,
    Spawn,
    Stop,
    decode_report,
    encode_order,
)

SHIM_ID = "SUBLUMINAL_SHIM_ID"
"""Set for the upstream and so for all its descendants: `<shim pid>.<its start>.<client pid>`.

Nothing secret: `sub doctor` finds by it what was left behind, and whose it was.
"""


class Warden:
    """A warden process and the pipes of the upstream that it starts."""

    def __init__(self, pid: int, orders: int, reports: int, stdio: tuple[int, int, int]) -> None:
        self.pid = pid
        self.stdin_fd, self.stdout_fd, self.stderr_fd = stdio
        self.report_fd = reports
        """Readable when there are reports, and at the warden's end."""
        self.closed = False
        """Whether the warden is dead and collected: stop polling `report_fd`."""
        self.gone = False
        """Whether the warden said that the whole tree is gone."""
        self._orders = orders
        self._frames = Frames()
        self._unread: list[Report] = []
        self._spawned = False

    @classmethod
    def fork(cls) -> "Warden":
        """Forks the warden. Do it first of all: what is loaded later is not in its memory."""
        _fill_standard_descriptors()
        # All are close-on-exec: the shim's ends must reach neither upstream nor helpers.
        (up_in, stdin), (stdout, up_out), (stderr, up_err) = os.pipe(), os.pipe(), os.pipe()
        (warden_orders, orders), (reports, warden_reports) = os.pipe(), os.pipe()
        keep_ignored = ignored_now()
        # Frozen objects are not touched by the collector, so their pages stay shared.
        gc.freeze()
        # A signal to the shim's group must not reach the warden before it is deaf to it.
        mask = posix.pthread_sigmask(posix.SIG_BLOCK, SHIELDED)
        pid = os.fork()
        if pid == 0:
            upstream = (up_in, up_out, up_err)
            serve(warden_orders, warden_reports, upstream, mask=mask, keep_ignored=keep_ignored)
        posix.pthread_sigmask(posix.SIG_SETMASK, mask)
        for fd in (up_in, up_out, up_err, warden_orders, warden_reports):
            os.close(fd)
        os.set_blocking(reports, False)
        return cls(pid, orders, reports, (stdin, stdout, stderr))

    @property
    def lost(self) -> bool:
        """Whether the warden died before the tree did: `sweep_descendants()` is yours to call."""
        return self.closed and not self.gone

    def spawn(
        self,
        argv: list[str],
        env: dict[str, str],
        *,
        cwd: str | None = None,
        grace_ms: int = 2000,
        after_death: list[str] | None = None,
    ) -> None:
        """Orders the upstream's start; `spawned` or `failed` is reported.

        `after_death` runs, with the environment the shim started with, when the shim dies without
        `stop` and the tree is gone. Raises ValueError when an argument or a variable holds a NUL.
        """
        if self._spawned or not argv:
            raise ValueError("a warden starts one upstream, and it needs a program")
        self._spawned = True
        # No program can be given a variable with such a name; one may stand in our own environment.
        passed = {k: v for k, v in env.items() if k and "=" not in k} | {SHIM_ID: _shim_id()}
        self._order(
            Spawn(
                [os.fsencode(argument) for argument in argv],
                {os.fsencode(name): os.fsencode(value) for name, value in passed.items()},
                os.fsencode(cwd or ""),
                grace_ms,
                [os.fsencode(argument) for argument in after_death or ()],
            )
        )

    def stop(self, *, grace_ms: int | None = None) -> None:
        """Orders the tree's end and returns at once; close `stdin_fd` before.

        Also says that the shim's end is in order, so it is due even after `gone`. What the
        upstream left behind when it exited lives until this call, or the shim's death.
        """
        self._order(Stop(grace_ms))

    def signal(self, signum: int) -> None:
        """Passes a signal on to the upstream's process group."""
        self._order(Signal(signum))

    def read_reports(self) -> list[Report]:
        """Everything reported since the last call; never blocks."""
        self._receive()
        reports, self._unread = self._unread, []
        return reports

    def wait_gone(self, timeout_ms: int) -> bool:
        """Waits until the whole tree is gone; False at the timeout, or when the warden is lost."""
        deadline = time.monotonic() + timeout_ms / 1000
        poll = select.poll()
        poll.register(self.report_fd, select.POLLIN)
        while True:
            self._receive()
            left_s = deadline - time.monotonic()
            if self.gone or self.closed or left_s <= 0:
                return self.gone
            poll.poll(left_s * 1000)

    def _receive(self) -> None:
        while not self.closed:
            try:
                data = os.read(self.report_fd, 65536)
            except BlockingIOError:
                return
            for frame in self._frames.feed(data):
                report = decode_report(frame)
                self.gone = self.gone or report.kind == GONE
                self._unread.append(report)
            if not data:
                self._collect()

    def _collect(self) -> None:
        """Collects the warden, which has closed its pipes and so is at its end.

        INVARIANT: after this its children are ours, if we are a subreaper: a sweep finds them.
        """
        self.closed = True
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            return  # someone else waits for all children of this process

    def _order(self, order: Order) -> None:
        frame = memoryview(encode_order(order))
        try:
            while frame:
                frame = frame[os.write(self._orders, frame) :]
        except BrokenPipeError:
            return  # the warden is dead: `report_fd` tells


def _fill_standard_descriptors() -> None:
    """Opens what the client left closed of 0, 1 and 2, lest a pipe of ours lands there."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)


def _shim_id() -> str:
    own = process(os.getpid())
    return f"{os.getpid()}.{own.start_ticks if own else 0}.{os.getppid()}"
