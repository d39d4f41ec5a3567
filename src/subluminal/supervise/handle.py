"""The shim's side of the warden: forks it and its deputy, gives it orders, reads its reports.

Never call it from a signal handler: an order can be longer than a pipe accepts in one write, and
the parts of two orders must not mix.
"""

import gc
import os
import select
import time

from subluminal.supervise.serving import Inherited, serve
from subluminal.supervise.signals import SHIELDED, ignored_now, posix
from subluminal.supervise.tree import SHIM_ID, Kin, ended, kill_all, signal_process, sweep
from subluminal.supervise.wire import (
    GONE,
    SPAWNED,
    Frames,
    Order,
    Report,
    Signal,
    Spawn,
    Stop,
    decode_report,
    encode_order,
)
from subluminal.system import LINUX
from subluminal.system.processes import process

_MARGIN_S = 3.0
"""Time for a stopping warden, on top of the grace. A warden that needs more cannot do its work."""
_FOLLOW_MS = 200
"""Time for the deputy to exit after its warden."""


class WardenHandle:
    """A handle on one warden process, with the shim's ends of the upstream's three pipes."""

    def __init__(
        self, pid: int, *, orders: int, reports: int, life: int, stdio: tuple[int, int, int]
    ) -> None:
        self.pid = pid
        """Pid of the deputy, which is the shim's child and the warden's parent."""
        self.stdin_fd, self.stdout_fd, self.stderr_fd = stdio
        self.report_fd = reports
        """Readable when there are reports, and when the warden has exited."""
        self.closed = False
        """True once the warden is dead and reaped; `report_fd` must not be polled any more."""
        self.gone = False
        """True once the whole tree is gone: the warden has reported it, or we have swept it."""
        self._orders = orders
        self._life = life
        """Open while the shim lives; its end tells the deputy that the shim died."""
        self._frames = Frames()
        self._unread: list[Report] = []
        self._spawned = False
        self._grace_s = 0.0
        self._kin = Kin(os.getpid(), adopts=LINUX, mark=_shim_id())
        self._give_up_at: float | None = None

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
        deputy_life, life = os.pipe()
        keep_ignored = ignored_now()
        mark = _shim_id()
        # The collector does not write to frozen objects, so their pages stay shared.
        gc.freeze()
        # Blocked until the forks ignore them: a signal to the shim's group must not end them.
        mask = posix.pthread_sigmask(posix.SIG_BLOCK, SHIELDED)
        given = Inherited(
            orders=warden_orders,
            reports=warden_reports,
            life=deputy_life,
            stdio=(up_in, up_out, up_err),
            mark=mark,
            mask=mask,
            keep_ignored=keep_ignored,
        )
        pid = os.fork()
        if pid == 0:
            serve(given)
        posix.pthread_sigmask(posix.SIG_SETMASK, mask)
        for fd in (up_in, up_out, up_err, warden_orders, warden_reports, deputy_life):
            os.close(fd)
        os.set_blocking(reports, False)
        stdio = (stdin, stdout, stderr)
        return cls(pid, orders=orders, reports=reports, life=life, stdio=stdio)

    @property
    def lost(self) -> bool:
        """True if the warden died before the tree did: the shim must call `sweep`."""
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
        self._grace_s = grace_ms / 1000
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
        grace_s = self._grace_s if grace_ms is None else grace_ms / 1000
        self._give_up_at = time.monotonic() + grace_s + _MARGIN_S
        self._order(Stop(grace_ms))

    def hurry(self) -> None:
        """Kills the warden and the tree if the warden has not ended the tree in time after `stop`.

        The upstream may have stopped the warden. The warden is then `lost`.
        """
        if self._give_up_at is None or self.gone or self.closed:
            return
        if time.monotonic() >= self._give_up_at:
            kill_all(Kin(self.pid, adopts=LINUX))
            signal_process(self.pid, posix.SIGKILL)

    def sweep(self) -> list[Report]:
        """Kills the processes that a dead warden left. Returns a report for each."""
        victims = sweep(self._kin)
        self.gone = True
        return [ended(victim, posix.SIGKILL, "left behind") for victim in victims]

    def dismiss(self, timeout_ms: int) -> None:
        """Waits until warden and deputy are dead too, after `stop` and `gone`."""
        deadline = time.monotonic() + timeout_ms / 1000
        while not self.closed and time.monotonic() < deadline:
            self._wait(deadline)
            self._receive()

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
        while True:
            self._receive()
            if self.gone or self.closed or time.monotonic() >= deadline:
                return self.gone
            self._wait(deadline)

    def _wait(self, deadline: float) -> None:
        poll = select.poll()
        poll.register(self.report_fd, select.POLLIN)
        poll.poll(max(0.0, deadline - time.monotonic()) * 1000)

    def _receive(self) -> None:
        while not self.closed:
            try:
                data = os.read(self.report_fd, 65536)
            except BlockingIOError:
                return
            for frame in self._frames.feed(data):
                report = decode_report(frame)
                self.gone = self.gone or report.kind == GONE
                if report.kind == SPAWNED:
                    self._kin.group = report.pid
                self._unread.append(report)
            if not data:
                self._collect()

    def _collect(self) -> None:
        """Reaps the deputy of a warden that closed its pipes, which it does by exiting.

        A deputy that does not follow its warden at once is killed: it may be stopped. INVARIANT:
        after this their children are ours, if we are a subreaper, and a sweep finds them.
        """
        self.closed = True
        # The deputy alone reads from this pipe: an error shows that it exits.
        poll = select.poll()
        poll.register(self._life, 0)
        if not poll.poll(_FOLLOW_MS if self.gone else 0):
            signal_process(self.pid, posix.SIGKILL)
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
    # Without /proc the start would cost a run of `ps`, before the upstream may start.
    own = process(os.getpid()) if LINUX else None
    return f"{os.getpid()}.{own.start if own else 0}.{os.getppid()}"
