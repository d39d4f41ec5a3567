"""The loop between a client and its MCP server (byte-transparent, no-orphans).

Theory of operation. One thread polls all descriptors. Bytes are passed on unchanged, and inspected
afterwards; only a client's `tools/call` waits for its decision. Nothing here blocks, and every
buffer has a bound. Ends of calls and tool lists are recorded when the loop is idle, so that they do
not delay answers. When the client leaves, a signal arrives or the server ends, the runs are closed
on record first; then the server's process tree is stopped (`ending`).
"""

import os
import select
import sys
import time
from collections.abc import Callable

from subluminal.adapters.mcp.calls import Calls
from subluminal.adapters.mcp.render import Renderer
from subluminal.adapters.mcp.replies import replies_in
from subluminal.adapters.mcp.tool_lists import ToolLists
from subluminal.adapters.mcp_stdio.client_lines import LineSplitter
from subluminal.adapters.mcp_stdio.descriptors import (
    Borrowed,
    hung_up,
    read,
    readable,
)
from subluminal.adapters.mcp_stdio.ending import (
    Ending,
    failure_of,
    has_crashed,
    how_it_ended,
    record_report,
    was_stopped,
)
from subluminal.adapters.mcp_stdio.greeting import Greeting
from subluminal.adapters.mcp_stdio.outlet import CHUNK_BYTES, ClientOutlet, Outlet, drain_all
from subluminal.adapters.mcp_stdio.requests import Requests
from subluminal.adapters.mcp_stdio.server_lines import LineKeeper
from subluminal.adapters.mcp_stdio.server_stderr import ServerStderr
from subluminal.config.settings import Settings
from subluminal.contracts.events import ServerFailure
from subluminal.contracts.vocabulary import Client, ErrorClass, RunStatus, Status, Transport
from subluminal.core.host import Host
from subluminal.core.live_settings import of_server
from subluminal.core.runs.failures import Served, sentence
from subluminal.errors import ExitCode
from subluminal.supervise import EXITED, FAILED, Report, WardenHandle
from subluminal.system.signals import STOP_SIGNALS, wake_on_signals
from subluminal.trust.identity.clients import client_named

MAX_WAITING_BYTES = 1 << 20
"""While this many bytes wait for one side, nothing more is read from the other."""

_MAX_CHUNKS = 4
"""Most chunks that are read from the server in one turn; the client's pipe holds as many."""

_MAX_LAST_READS = 16
"""Most reads of a dead server's pipe, which holds 1 MiB at most. Processes that it left may write
on, faster than anybody reads."""

_IDLE_MS = 500
"""Longest sleep without traffic; a changed policy is noticed within this time."""
_SETTLE_MS = 1
"""Ends of calls are written when nothing has happened for this long."""
_MAX_UNRECORDED = 64
"""If more ends of calls wait, some are written in each turn: writing all at once delays calls."""
_LOOK_EVERY_MS = 50
"""Shortest time between two runs of `_housekeep` in a settled shim."""
_SOON_MS = 20
"""Longest sleep while a policy is being compiled, or while modules are left to load."""
_OWN_SIGNAL_MS = 150
"""Longest wait, after the server failed, for the signal with which a client ends the shim too."""
_GIVE_UP_MS = 5_000
"""Longest wait for the warden after a bug in the loop."""
_DISMISS_MS = 500
"""Longest wait for the warden's own end, after it has ended the tree."""
_LAST_WORDS_MS = 500
"""Longest wait for a client that does not read, after the server's tree is gone."""

_IN = select.POLLIN | select.POLLHUP | select.POLLERR


class Shim:
    """One client, one server, one loop."""

    def __init__(
        self,
        warden: WardenHandle,
        host: Host,
        splitter: LineSplitter,
        *,
        server_name: str,
        client_is_given: bool,
    ) -> None:
        """`client_is_given` is True if the client's own name for itself does not count."""
        settings, own = host.settings, of_server(host.settings, server_name)
        self._warden = warden
        self._host = host
        self._splitter = splitter
        self._server_name = server_name
        self._client_is_given = client_is_given
        self._run_is_open = False
        self._client_spoke = False
        """whether the client has sent anything; until then it may be one that names its runs"""
        self._client = ClientOutlet(1)
        self._stderr = ServerStderr(warden.stderr_fd)
        self._server = Outlet(warden.stdin_fd)
        self._tool_lists = ToolLists(server_name, host)
        self._calls = Calls(
            server_name,
            host,
            Renderer(settings.shim.codes),
            self._client.answer,
            transport=Transport.MCP_STDIO,
            call_timeout_ms=own.call_timeout_ms,
        )
        self._requests = Requests(
            host, self._calls, self._tool_lists, splitter, self._client, self._server, self._meet
        )
        self._keeper = LineKeeper(settings.limits.max_inspect_bytes)
        self._keep_bytes = host.looked_at_bytes
        """size of the part of a result that is kept until it is recorded"""
        self._reading_client = True
        self._spoke = False
        """whether the server has written anything"""
        self._is_warm = False
        """whether the modules that the first call needs are loaded; done when the loop is idle"""
        self._server_speaks = True
        """whether the server's stdout is open"""
        self._signal = 0
        self._wakeup = -1
        self._poll = select.poll()
        self._watched: dict[int, int] = {}
        self._handlers: dict[int, Callable[[], None]] = {}
        self._changed = True
        """whether the set of descriptors to poll may have to change"""
        self._settled = False
        """whether starting is over and ending has not begun; then `_housekeep` runs less often"""
        self._next_look_ms = 0
        self.ending = Ending(warden, own.grace_ms)

    def run(self, greeting: Greeting) -> int:
        """Runs until the server's tree is gone; returns the exit code."""
        warden = self._warden
        borrowed = Borrowed((0, 1, 2, warden.stdin_fd, warden.stdout_fd, warden.stderr_fd))
        self._wakeup = wakeup = wake_on_signals()
        self._handlers = self._all_handlers(wakeup)
        try:
            self._housekeep(_now_ms())
            self._go_on_from(greeting)
            while not self.ending.is_over(self._output_left):
                self._turn(wakeup)
            self._leave()
            code = self.ending.exit_code(self._signal)
        except Exception as bug:  # noqa: BLE001 - the adapter's edge: the run gets its end
            code = self._give_up(bug)
        self._host.close()
        drain_all((self._client, self._stderr.outlet), _LAST_WORDS_MS)
        self._warden.dismiss(_DISMISS_MS)
        borrowed.give_back()
        return code

    def _go_on_from(self, greeting: Greeting) -> None:
        """Takes the bytes that were read before the loop started."""
        if greeting.passed_on:
            self._requests.look_at(greeting.passed_on)
        self._requests.asked, self._spoke = greeting.asked, greeting.answered
        self._read_reports()  # the start of the server must be recorded first
        if greeting.from_server:
            self._take_answer(greeting.from_server)
        if greeting.from_client and self._reading_client:
            self._requests.take(greeting.from_client)

    # One turn of the loop

    def _turn(self, wakeup: int) -> None:
        if self._changed or self._client.busy or self._server.busy or self._stderr.outlet.busy:
            self._watch(self._wanted(wakeup))
        calls = self._calls
        unsettled = calls.unrecorded or self._tool_lists.waiting
        ready = self._poll.poll(_SETTLE_MS if unsettled else self._timeout_ms())
        now_ms = time.monotonic_ns() // 1_000_000
        if now_ms >= self._next_look_ms:
            # Done before new lines are decided: a policy may have changed during the sleep.
            self._housekeep(now_ms)
        for fd, _ in ready:
            self._handlers[fd]()
        if not ready:
            self._settle()
        elif calls.unrecorded > _MAX_UNRECORDED:
            calls.record(_MAX_UNRECORDED // 8)
        if not self._settled:
            self._housekeep(_now_ms())

    def _settle(self) -> None:
        """Does what can wait until the loop is idle."""
        self._calls.record(None)
        if self._tool_lists.waiting:
            self._record_tool_lists()
        if self._spoke and not self._is_warm:
            self._is_warm = True
            self._host.warm()

    def _wanted(self, wakeup: int) -> dict[int, int]:
        """Returns the descriptors to poll now, each with its events."""
        warden, wanted = self._warden, {wakeup: _IN}
        if self._reading_client and self._has_room():
            wanted[0] = _IN
        if self._server_speaks and self._client.waiting < MAX_WAITING_BYTES:
            wanted[warden.stdout_fd] = _IN
        if self._stderr.is_open:
            wanted[warden.stderr_fd] = _IN
        if not warden.closed:
            wanted[warden.report_fd] = _IN
        if self.ending.waits_for_answers:
            wanted[1] = 0  # only to notice that the client has closed it
        for outlet in (self._client, self._server, self._stderr.outlet):
            if outlet.busy:
                wanted[outlet.fd] = select.POLLOUT
        return wanted

    def _watch(self, wanted: dict[int, int]) -> None:
        # The set may change again while bytes wait: once they have left, the other side is read.
        self._changed = self._client.busy or self._server.busy or self._stderr.outlet.busy
        for fd in self._watched.keys() - wanted.keys():
            self._poll.unregister(fd)
        for fd, events in wanted.items():
            if self._watched.get(fd) != events:
                self._poll.register(fd, events)
        self._watched = wanted

    def _all_handlers(self, wakeup: int) -> dict[int, Callable[[], None]]:
        warden = self._warden
        return {
            0: self._read_client,
            1: self._client.drain,
            2: self._stderr.outlet.drain,
            warden.stdin_fd: self._server.drain,
            warden.stdout_fd: self._read_server,
            warden.stderr_fd: self._read_stderr,
            warden.report_fd: self._read_reports,
            wakeup: self._read_signals,
        }

    def _has_room(self) -> bool:
        # Beyond MAX_WAITING_BYTES the server is not read, so what waits for the client beyond it
        # are our own refusals. Only these count: a client that writes before it reads must not be
        # blocked by the server's bytes.
        refusals = self._client.waiting - MAX_WAITING_BYTES
        return max(self._server.waiting, refusals, self._requests.held.size) < MAX_WAITING_BYTES

    @property
    def _output_left(self) -> bool:
        return self._server_speaks or self._stderr.is_open or self._client.busy

    def _timeout_ms(self) -> int:
        if self._settled:
            return _IDLE_MS
        if self._requests.is_loading or (self._spoke and not self._is_warm):
            return _SOON_MS
        return self.ending.timeout_ms(_now_ms(), _IDLE_MS)

    def _housekeep(self, now_ms: int) -> None:
        """Does what is due at intervals, and in every turn while the shim starts or ends."""
        self._next_look_ms = now_ms + _LOOK_EVERY_MS
        settings = self._host.tick(now_ms, self._record_ends)
        self._requests.is_loading = self._host.is_loading
        if settings is not None:
            self._adopt(settings)
        if not self._calls.halted and not self.ending.stopping:
            self._halt_if_told()
        if not self._run_is_open or self._requests.held:
            self._begin_if_ready(now_ms)
        self._calls.time_out()
        self._warden.hurry()
        self.ending.hurry(now_ms)
        if self.ending.waits_for_answers:
            self._wait_for_answers(now_ms)
        is_open = self._run_is_open and not self._requests.held and self._reading_client
        self._settled = is_open and self._is_warm
        self._changed = True

    def _record_ends(self) -> None:
        self._calls.record(None)

    def _adopt(self, settings: Settings) -> None:
        own = of_server(settings, self._server_name)
        self._keep_bytes = self._host.looked_at_bytes
        self._keeper.max_bytes = self._splitter.max_bytes = settings.limits.max_inspect_bytes
        self.ending.grace_ms = own.grace_ms
        self._calls.adopt(Renderer(settings.shim.codes), own.call_timeout_ms)

    def _halt_if_told(self) -> None:
        """Ends the server's tree after `sub kill --hard`. The shim stays, and refuses calls."""
        stop = self._host.hard_stop(self._server_name)
        if stop is None:
            return
        self._calls.halted = (
            f"the server was stopped: {stop.sentence}; restart it from the client to use it again"
        )
        self._host.health("stopping", server_name=self._server_name, detail=stop.sentence)
        self.ending.close_input()
        self._server.broken = True
        self._warden.stop(grace_ms=0)

    def _begin_if_ready(self, now_ms: int) -> None:
        """Opens the run and decides held calls, once the policies are ready or time is up."""
        if self.ending.stopping or self._awaits_client:
            return
        if self._requests.is_loading:
            if self._requests.held.may_wait(now_ms):
                return
            self._host.give_up_waiting()
            self._requests.is_loading = self._host.is_loading
        self._begin()

    @property
    def _awaits_client(self) -> bool:
        """Whether the client may still say who it is, and that it names its runs."""
        return self._reading_client and not (self._client_spoke or self._host.run_is_fixed)

    def _begin(self) -> None:
        self._open()
        self._requests.let_go()
        if not self._reading_client and not self.ending.waits_for_answers:
            self._client_left()

    def _open(self, *, required: bool = False) -> None:
        """Opens the run, unless the first call is to name it; `required` opens it in any case."""
        is_known = self._host.run_is_fixed or not self._calls.names_runs
        if not self._run_is_open or (required and not self._host.has_runs):
            self._run_is_open = True
            if required or is_known:
                self._host.open_run()

    # The client's side

    def _meet(self, name: str | None) -> None:
        """Takes notice of a client that speaks for the first time, and of its name."""
        self._client_spoke = True
        if name is None:
            return
        client = client_named(name)
        self._calls.names_runs = client is Client.CODEX
        if client is None and self._host.identity.client is Client.UNKNOWN:
            client = Client.CUSTOM
        if client is not None and not self._client_is_given:
            self._host.identify(client)

    def _read_client(self) -> None:
        # The server may have ended in this turn: no call can be forwarded, so none is decided.
        data = read(0) if self._reading_client else None
        if data is None:
            return
        if not data:
            self._requests.finish()
            self._client_left()
            return
        self._requests.take(data)

    def _client_left(self) -> None:
        """Handles the end of the client's input: waits for answers, then stops the server."""
        self._reading_client = self._settled = False
        self._changed = True
        if self._requests.is_loading:
            return  # held calls are decided when the policy is ready
        self._open()
        now_ms = _now_ms()
        self.ending.wait_for_answers(now_ms, server_spoke=self._spoke)
        self._wait_for_answers(now_ms)

    def _wait_for_answers(self, now_ms: int) -> None:
        """Stops the server when all is answered, the client is gone, or the time is over."""
        if not self._server.busy:
            self.ending.close_input()
            self._server.broken = True
        is_awaited = (
            self._calls.open or self._server.busy or (self._requests.asked and not self._spoke)
        )
        if not is_awaited or not self._server_speaks:
            self._stop()
        elif self._client.broken or hung_up(1):
            self._stop(RunStatus.CANCELLED if self._calls.open else None)
        elif self.ending.is_overdue(now_ms):
            self._stop(RunStatus.CANCELLED if self._calls.open else None, grace_ms=0)

    # The server's side

    def _read_server(self) -> None:
        """Passes on what the server wrote: up to _MAX_CHUNKS chunks, because a turn costs time."""
        for _ in range(_MAX_CHUNKS):
            data = read(self._warden.stdout_fd)
            if data is None:
                return
            if not data:
                self._server_speaks = False
                self._changed = True
                self._client.server_ended()
                return
            self._take_answer(data)
            if len(data) < CHUNK_BYTES or self._client.busy:
                return

    def _take_answer(self, data: bytes) -> None:
        # The bytes go to the client first: recording must not delay an answer.
        self._client.forward(data)
        self._spoke = True
        calls, lists = self._calls, self._tool_lists
        try:
            for line in self._keeper.feed(data, wanted=calls.open > 0 or bool(lists.asked)):
                if calls.open or lists.asked:
                    keep_bytes = sys.maxsize if lists.asked else self._keep_bytes
                    for reply in replies_in(line, keep_bytes):
                        calls.replied(reply)
                        if lists.asked:
                            lists.replied(reply)
        except Exception as bug:  # noqa: BLE001 - the adapter's edge: the answer was passed on
            self._host.report_bug(bug)
        if self.ending.waits_for_answers:
            self.ending.wait_for_answers(_now_ms(), server_spoke=True)

    def _record_tool_lists(self) -> None:
        try:
            self._tool_lists.record()
        except Exception as bug:  # noqa: BLE001 - the adapter's edge: nobody waits for this
            self._host.report_bug(bug)

    def _read_stderr(self) -> None:
        self._stderr.read()
        self._changed = self._changed or not self._stderr.is_open

    def _read_reports(self) -> None:
        for report in self._warden.read_reports():
            self.ending.note(report)
            if report.kind == FAILED:
                self._stderr.say(f"error: {report.detail}")
                self._open(required=True)
            if report.kind in (EXITED, FAILED):
                self._server_left(report)
            else:
                record_report(self._host, self._server_name, report)
        if self._warden.lost and not self.ending.swept:
            self._sweep()

    def _server_left(self, report: Report) -> None:
        """Handles a report that the server ended or never started."""
        if report.kind == EXITED and has_crashed(report) and not was_stopped(report):
            self._await_own_signal()
        if self.ending.stopping:
            record_report(self._host, self._server_name, report)
            return
        self._open()
        self._hear_last_words()
        if self._calls.halted:
            record_report(self._host, self._server_name, report)
            self._calls.refuse_pending(self._calls.halted)
            return
        failure = self._failure(report)
        record_report(self._host, self._server_name, report, failure)
        had_open = self._calls.open
        is_stopped = was_stopped(report) or not (self._reading_client or failure)
        is_lost = (had_open > 0 or bool(self._calls.unreachable)) and not is_stopped
        status = Status.ERROR if is_lost else Status.CANCELLED
        ended = f"the server {how_it_ended(report)}"
        self._calls.end_all(status, ended, ErrorClass.TRANSPORT)
        self._reading_client = False
        if is_lost:
            # An exit code of 0 is not a failure of the server, but its calls have no answer.
            told = failure or failure_of(self._server_name, report, "")
            self._stop(RunStatus.FAILED, failure, sentence(told, had_open))
        else:
            self._stop(RunStatus.CANCELLED if had_open else None, failure)

    def _await_own_signal(self) -> None:
        """Waits a moment for a signal to this process: the client may be ending the whole tree.

        Some clients signal the server first, the shim a little later, and kill the shim at once.
        Nothing is lost if that happens here: no call can be forwarded any more (shared-runs).
        """
        if self.ending.stopping or self._calls.halted:
            return
        if readable(self._wakeup, _OWN_SIGNAL_MS):
            self._read_signals()

    def _failure(self, report: Report) -> ServerFailure | None:
        """Returns how the server failed; None if it ended in order, or because it was told to."""
        if not has_crashed(report) or was_stopped(report):
            return None
        line = self._stderr.last_line(_MAX_LAST_READS)
        return failure_of(self._server_name, report, line and self._host.masked_line(line))

    def _hear_last_words(self) -> None:
        """Reads what a dead server left in its pipe: it may hold answers."""
        for _ in range(_MAX_LAST_READS):
            if self._server_speaks and readable(self._warden.stdout_fd):
                self._read_server()

    def _sweep(self) -> None:
        """Does the work of a warden that was killed: records the end, then ends the tree."""
        self._hear_last_words()
        is_halted = bool(self._calls.halted) and not self.ending.stopping
        if is_halted:
            self._calls.refuse_pending(self._calls.halted)
        elif not self.ending.stopping:
            self._calls.end_all(Status.ERROR, "the warden was killed", ErrorClass.TRANSPORT)
            self._open(required=True)
            self._reading_client = False
            self._requests.held.drop()
            why = f"the warden of server `{self._server_name}` was killed"
            self._leave(RunStatus.FAILED, reason=why)
        self.ending.swept = not is_halted
        for report in self._warden.sweep():
            record_report(self._host, self._server_name, report)

    # The end

    def _read_signals(self) -> None:
        for signum in os.read(self._wakeup, 64):
            if signum not in STOP_SIGNALS:
                continue
            self._signal = self._signal or signum
            self._open()
            # The client may kill us within 40 ms (no-orphans), so the record comes first.
            had_open = self._calls.open > 0 or bool(self._requests.held)
            self._calls.end_all(Status.CANCELLED, "the client stopped", ErrorClass.UNKNOWN)
            self._leave(RunStatus.CANCELLED if had_open else None)
            self._reading_client = False
            self._warden.signal(signum)
            self._stop()

    def _stop(
        self,
        status: RunStatus | None = None,
        failure: ServerFailure | None = None,
        reason: str = "",
        *,
        grace_ms: int | None = None,
    ) -> None:
        self._calls.end_all(Status.CANCELLED, "the client left", ErrorClass.UNKNOWN)
        self._leave(status, failure, reason)
        self._requests.held.drop()
        self._server.drain()
        self.ending.close_input()
        self._server.broken = True
        self.ending.stop(_now_ms(), grace_ms)

    def _leave(
        self,
        status: RunStatus | None = None,
        failure: ServerFailure | None = None,
        reason: str = "",
    ) -> None:
        self._settled, self._changed = False, True
        self._calls.record(None)
        self._record_tool_lists()
        worked = self._spoke and failure is None and status is not RunStatus.FAILED
        self._host.leave(status, Served(worked, failure, reason))

    def _give_up(self, bug: Exception) -> int:
        """Ends the shim after a bug in the loop, with a bug report; returns the exit code."""
        self._host.report_bug(bug)
        self._stderr.say(
            f"error: a bug in sub: {type(bug).__name__}; see the newest file in its reports"
        )
        why = f"a bug in sub: {type(bug).__name__} in the shim of server `{self._server_name}`"
        self._host.leave(RunStatus.FAILED, Served(worked=False, reason=why))
        self.ending.stop(_now_ms(), 0)
        self._warden.wait_gone(_GIVE_UP_MS)
        return ExitCode.BUG


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
