"""The shim's side of the warden: forks it, gives it orders, reads its reports.

Never call it from a signal handler: an order can be longer than a pipe accepts in one write, and
the parts of two orders must not mix.
"""

import gc
import os
import select
import time

from subluminal.supervise.processes import process
from subluminal.supervise.serving import serve
from subluminal.supervise.system import SHIELDED, ignored_now, posix
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
"""Environment variable of the upstream and all its descendants: `SHIM_PID.START_TICKS.CLIENT_PID`.

Not secret. `sub doctor` uses it to find processes that were left behind, and whose they were.
"""


class WardenHandle:
    """A handle on one warden process, with the shim's ends of the upstream's three pipes."""

    def __init__(self, pid: int, orders: int, reports: int, stdio: tuple[int, int, int]) -> None:
        self.pid = pid
        self.stdin_fd, self.stdout_fd, self.stderr_fd = stdio
        self.report_fd = reports
        """Readable when there are reports, and when the warden has exited."""
        self.closed = False
        """True once the warden is dead and reaped; `report_fd` must not be polled any more."""
        self.gone = False
        """True once the warden reported that the whole tree is gone."""
        self._orders = orders
        self._frames = Frames()
        self._unread: list[Report] = []
        self._spawned = False

    @classmethod
    def fork(cls) -> "WardenHandle":
        """Forks the warden.

        Call it before importing anything else: modules that are loaded later do not become part
        of the warden's memory.
        """
        _fill_standard_descriptors()
        # All are close-on-exec: neither the upstream nor a helper may inherit the shim's ends.
        (up_in, stdin), (stdout, up_out), (stderr, up_err) = os.pipe(), os.pipe(), os.pipe()
        (warden_orders, orders), (reports, warden_reports) = os.pipe(), os.pipe()
        keep_ignored = ignored_now()
        # The collector does not write to frozen objects, so their pages stay shared.
        gc.freeze()
        # Blocked until the warden ignores them: a signal to the shim's group must not end it.
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
        """True if the warden died before the tree did: the shim must call `sweep_descendants()`."""
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
        """Orders the warden to start the upstream; it reports `spawned` or `failed`.

        If the shim dies without `stop`, the warden ends the tree and then runs `after_death`, with
        the environment that the shim started with. Raises ValueError if an argument or a variable
        contains a NUL byte.
        """
        if self._spawned or not argv:
            raise ValueError("a warden starts one upstream, and it needs a program")
        self._spawned = True
        # No program can be given a variable with such a name, but our own environment may have one.
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
        """Orders the warden to end the tree, and returns at once. Close `stdin_fd` first.

        It also tells the warden that the shim ends in good order, so it must be called even after
        `gone`. Processes that an exited upstream left behind live until this call or until the
        shim's death.
        """
        self._order(Stop(grace_ms))

    def signal(self, signum: int) -> None:
        """Passes a signal on to the upstream's process group."""
        self._order(Signal(signum))

    def read_reports(self) -> list[Report]:
        """Returns the reports since the last call. Never blocks."""
        self._receive()
        reports, self._unread = self._unread, []
        return reports

    def wait_gone(self, timeout_ms: int) -> bool:
        """Waits until the whole tree is gone. False at the timeout, or if the warden is lost."""
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
        """Reaps the warden, which closes its pipes only by exiting.

        INVARIANT: after this its children are ours, if we are a subreaper, and a sweep finds them.
        """
        self.closed = True
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            return  # other code in this process has already reaped it

    def _order(self, order: Order) -> None:
        frame = memoryview(encode_order(order))
        try:
            while frame:
                frame = frame[os.write(self._orders, frame) :]
        except BrokenPipeError:
            return  # the warden is dead, which `report_fd` shows


def _fill_standard_descriptors() -> None:
    """Opens descriptors 0, 1 and 2 if the client left them closed, so that no pipe becomes one."""
    fd = os.open(os.devnull, os.O_RDWR)
    while fd <= 2:
        fd = os.open(os.devnull, os.O_RDWR)
    os.close(fd)


def _shim_id() -> str:
    own = process(os.getpid())
    return f"{os.getpid()}.{own.start_ticks if own else 0}.{os.getppid()}"
