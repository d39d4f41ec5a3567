"""The loop between a client and its MCP server: one thread, one poll, original bytes (D6, D9).

Whatever arrives is passed on first where it may be, and looked at afterwards; only a client's
`tools/call` waits for its decision. Nothing here blocks, and every buffer has a bound.
"""

import os
import select
import signal
import stat
import time
from collections.abc import Callable
from typing import Any

from subluminal.adapters.mcp_stdio.calls import Calls
from subluminal.adapters.mcp_stdio.ending import Ending
from subluminal.adapters.mcp_stdio.intake import Intake, LargeLine
from subluminal.adapters.mcp_stdio.messages import (
    Other,
    classify,
)
from subluminal.adapters.mcp_stdio.outlet import CHUNK_BYTES, ClientOutlet, Outlet
from subluminal.adapters.mcp_stdio.replies import LineKeeper, replies_in
from subluminal.contracts.vocabulary import ErrorClass, RunStatus, Status
from subluminal.core.runs import Runs
from subluminal.supervise import EXITED, FAILED, Guard, Report, sweep_descendants

MAX_WAITING_BYTES = 1 << 20
"""A side that is behind by this much is not read for any more."""

MAX_STDERR_BYTES = 1 << 18
"""stderr that nobody reads is dropped past this, the oldest first: it must never block."""

_IDLE_MS = 1_000
_SETTLE_MS = 1
"""Ends of calls are written when nothing has happened for this long…"""
_MAX_UNRECORDED = 64
"""…or in slices, when this many wait: never all at once (performance.md 1f)."""
_LOOK_EVERY_MS = 50
_COMPILING_MS = 20
_HOLD_MS = 5_000
"""How long calls wait for a policy that is being compiled for the first time (D16)."""

_IN = select.POLLIN | select.POLLHUP | select.POLLERR
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Shim:
    """One client, one server, one loop."""

    def __init__(
        self,
        guard: Guard,
        runs: Runs,
        calls: Callable[[Callable[[bytes], None]], Calls],
        intake: Intake,
        *,
        open_run: Callable[[], None],
        max_inspect_bytes: int,
        grace_ms: int,
    ) -> None:
        self._guard = guard
        self._runs = runs
        self._intake = intake
        self._open_run = open_run
        self._run_is_open = False
        self._reports: list[Report] = []
        self._client = ClientOutlet(1)
        self._stderr = Outlet(2)
        self._server = Outlet(guard.stdin_fd)
        self._calls = calls(self._client.inject)
        self._keeper = LineKeeper(max_inspect_bytes)
        self._held: list[bytes | LargeLine] = []
        self._hold_until_ms = _now_ms() + _HOLD_MS
        self._reading_client = True
        self._server_speaks = True
        self._stderr_open = True
        self._signal = 0
        self._poll = select.poll()
        self._watched: dict[int, int] = {}
        self._handlers: dict[int, Callable[[], None]] = {}
        self._changed = True
        """whether the set of descriptors to poll may have to change"""
        self._settled = False
        """whether nothing but data is expected: the run is open, the client is there"""
        self._next_look_ms = 0
        self.ending = Ending(guard, grace_ms)

    def run(self) -> int:
        """Runs until the server's tree is gone; returns the exit code."""
        wakeup = self._prepare()
        self._handlers = self._all_handlers(wakeup)
        while not self.ending.is_over(self._server_speaks or self._client.busy):
            self._turn(wakeup)
        self._leave(None)
        self._drain_client()
        return self.ending.exit_code(self._signal)

    # One turn of the loop

    def _turn(self, wakeup: int) -> None:
        if self._changed or self._client.busy or self._server.busy or self._stderr.busy:
            self._watch(self._wanted(wakeup))
        ready = self._poll.poll(_SETTLE_MS if self._calls.unrecorded else self._timeout_ms())
        for fd, _ in ready:
            self._handlers[fd]()
        if not ready or self._calls.unrecorded > _MAX_UNRECORDED:
            self._calls.record(_MAX_UNRECORDED // 8 if ready else None)
        now_ms = _now_ms()
        if now_ms >= self._next_look_ms or not self._settled:
            self._housekeep(now_ms)

    def _wanted(self, wakeup: int) -> dict[int, int]:
        """Which descriptors matter now, and for what."""
        guard, wanted = self._guard, {wakeup: _IN}
        if self._reading_client and self._has_room():
            wanted[0] = _IN
        if self._server_speaks and self._client.waiting < MAX_WAITING_BYTES:
            wanted[guard.stdout_fd] = _IN
        if self._stderr_open:
            wanted[guard.stderr_fd] = _IN
        if not guard.closed:
            wanted[guard.report_fd] = _IN
        for outlet in (self._client, self._server, self._stderr):
            if outlet.busy:
                wanted[outlet.fd] = select.POLLOUT
        return wanted

    def _watch(self, wanted: dict[int, int]) -> None:
        # Stays changed while something waits: when that has left, others may be read again.
        self._changed = self._client.busy or self._server.busy or self._stderr.busy
        for fd in self._watched.keys() - wanted.keys():
            self._poll.unregister(fd)
        for fd, events in wanted.items():
            if self._watched.get(fd) != events:
                self._poll.register(fd, events)
        self._watched = wanted

    def _all_handlers(self, wakeup: int) -> dict[int, Callable[[], None]]:
        guard = self._guard
        return {
            0: self._read_client,
            1: self._client.drain,
            2: self._stderr.drain,
            guard.stdin_fd: self._server.drain,
            guard.stdout_fd: self._read_server,
            guard.stderr_fd: self._read_stderr,
            guard.report_fd: self._read_reports,
            wakeup: lambda: self._read_signals(wakeup),
        }

    def _has_room(self) -> bool:
        return max(self._server.waiting, self._client.waiting) < MAX_WAITING_BYTES

    def _timeout_ms(self) -> int:
        return _IDLE_MS if self._settled else _COMPILING_MS

    def _housekeep(self, now_ms: int) -> None:
        """What is due now and then, and in every turn while the shim starts or ends."""
        self._next_look_ms = now_ms + _LOOK_EVERY_MS
        self._runs.poll_policies(now_ms)
        if not self._run_is_open or self._held:
            self._begin_if_ready(now_ms)
        self._calls.time_out()
        self.ending.hurry(now_ms)
        if self.ending.waits_for_calls and not self._calls.open:
            self._stop()
        self._settled = self._run_is_open and not self._held and self._reading_client
        self._changed = True

    def _begin_if_ready(self, now_ms: int) -> None:
        """Opens the run and lets held calls go, once the policies are there or time is up."""
        if self._runs.is_loading:
            if now_ms < self._hold_until_ms:
                return
            self._runs.give_up_waiting()
        self._begin()

    def _begin(self) -> None:
        if not self._run_is_open:
            self._run_is_open = True
            self._open_run()
            for report in self._reports:
                self._record_report(report)
        held, self._held = self._held, []
        for line in held:
            self._take(line)
        if not self._reading_client and not self.ending.stopping:
            self._client_left()

    # The client's side

    def _read_client(self) -> None:
        data = _read(0)
        if data is None:
            return
        if not data:
            for line in self._intake.finish():
                self._take(line)
            self._client_left()
            return
        forward: list[bytes] = []
        for line in self._intake.feed(data):
            if isinstance(line, LargeLine):
                self._server.send(b"".join(forward))
                forward.clear()
                self._take(line)
            elif self._decide_line(line):
                forward.append(line)
        if forward:
            self._server.send(b"".join(forward) if len(forward) > 1 else forward[0])

    def _decide_line(self, line: bytes) -> bool:
        """Whether a line goes on now; one that has to wait for a policy is held."""
        message = classify(line)
        if isinstance(message, Other):
            return True
        if self._runs.is_loading:
            self._held.append(line)
            return False
        return self._calls.decide(message, _size(line))

    def _take(self, line: bytes | LargeLine) -> None:
        if isinstance(line, bytes):
            if self._decide_line(line):
                self._server.send(line)
        elif self._runs.is_loading:
            self._held.append(line)
        else:
            self._pass_on_large(line)

    def _pass_on_large(self, line: LargeLine) -> None:
        message = line.message()
        if self._calls.decide_large(message, line.spool.size) and not line.overflowed:
            self._server.stream(line.spool)
        else:
            line.spool.close()

    def _client_left(self) -> None:
        """EOF. What was asked may still be answered; then the server has its grace to end."""
        self._reading_client = self._settled = False
        self._changed = True
        if self._runs.is_loading:
            return  # what was asked is decided when the policy is there
        if self._calls.open and self._server_speaks and not self._client.broken:
            self.ending.wait_for_calls(_now_ms())
            self._close_server_input()
        else:
            self._stop()

    def _close_server_input(self) -> None:
        # INVARIANT: closed once; what still waits for the server is given up only by `_stop`.
        while self._server.busy:
            self._server.drain()
            if self._server.busy and not _writable(self._server.fd):
                break
        self.ending.close_input()
        self._server.broken = True

    # The server's side

    def _read_server(self) -> None:
        data = _read(self._guard.stdout_fd)
        if data is None:
            return
        if not data:
            self._server_speaks = False
            self._changed = True
            self._client.server_ended()
            return
        # The client comes first: accounting must not delay an answer.
        self._client.forward(data)
        calls = self._calls
        for line in self._keeper.feed(data, wanted=calls.open > 0):
            if calls.open:
                for reply in replies_in(line):
                    calls.replied(reply)

    def _read_stderr(self) -> None:
        data = _read(self._guard.stderr_fd)
        if data is None:
            return
        if not data:
            self._stderr_open = False
            self._changed = True
            return
        self._stderr.send(data)
        if self._stderr.waiting > MAX_STDERR_BYTES:
            self._stderr.drop_oldest(MAX_STDERR_BYTES)

    def _read_reports(self) -> None:
        for report in self._guard.read_reports():
            self.ending.note(report)
            if self._run_is_open:
                self._record_report(report)
            else:
                self._reports.append(report)
            if report.kind == FAILED:
                self._say(f"sub: {report.detail}")
            if report.kind in (EXITED, FAILED):
                self._server_left(report)
        if self._guard.lost and not self.ending.swept:
            self.ending.swept = True
            sweep_descendants()
            self._leave(RunStatus.FAILED)

    def _record_report(self, report: Report) -> None:
        details: dict[str, Any] = {"pid": report.pid} if report.pid else {}
        if report.exit_code is not None:
            details["exit_code"] = report.exit_code
        if report.signal is not None:
            details["signal"] = report.signal
        if report.detail:
            details["detail"] = report.detail
        for enforcer in self._runs.all():
            enforcer.run.health(report.kind, **details)

    def _server_left(self, report: Report) -> None:
        """The server ended or never started: by itself, or because we asked."""
        if self.ending.stopping:
            return
        if not self._run_is_open:
            self._begin()
        while self._server_speaks and _readable(self._guard.stdout_fd):
            self._read_server()  # its last words may hold answers
        crashed = report.kind == FAILED or report.signal is not None or bool(report.exit_code)
        why = report.detail or f"the server exited with code {report.exit_code}"
        had_open = self._calls.open > 0
        self._calls.end_all(Status.ERROR, why, ErrorClass.TRANSPORT)
        self._leave(RunStatus.FAILED if crashed or had_open else None)
        self._reading_client = False
        self._stop()

    # The end

    def _read_signals(self, wakeup: int) -> None:
        for signum in os.read(wakeup, 64):
            if signum not in _STOP_SIGNALS:
                continue
            self._signal = self._signal or signum
            if not self._run_is_open:
                self._run_is_open = True
                self._open_run()
            # Little time is left (D9): first the record, then everything else.
            had_open = self._calls.open > 0
            self._calls.end_all(Status.CANCELLED, "the client stopped", ErrorClass.UNKNOWN)
            self._leave(RunStatus.CANCELLED if had_open else None)
            self._reading_client = False
            self._guard.signal(signum)
            self._stop()

    def _stop(self) -> None:
        self._calls.end_all(Status.CANCELLED, "the client left", ErrorClass.UNKNOWN)
        self._leave(None)
        if not self.ending.stopping:
            self._close_server_input()
            self.ending.stop(_now_ms())

    def _leave(self, failure: RunStatus | None) -> None:
        self._settled, self._changed = False, True
        self._calls.record(None)
        self._runs.leave_all(failure)

    def _say(self, text: str) -> None:
        self._stderr.send(text.encode("utf-8", "backslashreplace") + b"\n")

    def _prepare(self) -> int:
        for fd in (0, 1, 2, self._guard.stdin_fd, self._guard.stdout_fd, self._guard.stderr_fd):
            _never_block(fd)
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for signum in _STOP_SIGNALS:
            signal.signal(signum, _noted)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        return read_end

    def _drain_client(self) -> None:
        """Gives a client that still reads what the server said last."""
        deadline = _now_ms() + 500
        poll = select.poll()
        poll.register(1, select.POLLOUT)
        while (self._client.busy or self._stderr.busy) and _now_ms() < deadline:
            self._stderr.drain()
            poll.poll(50)
            self._client.drain()


def _noted(_signum: int, _frame: Any) -> None:
    """The wake-up descriptor has the signal; a handler must exist for it to be written."""


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def _size(line: bytes) -> int:
    return len(line) - line.endswith(b"\n")


def _read(fd: int) -> bytes | None:
    """Returns what is there, empty at the end, None if nothing is there yet."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & select.POLLIN for _, event in poll.poll(0))


def _writable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return any(event == select.POLLOUT for _, event in poll.poll(200))


def _never_block(fd: int) -> None:
    """Pipes and sockets are ours alone to set; a terminal is shared with the shell."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        os.set_blocking(fd, False)
