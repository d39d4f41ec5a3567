"""The loop of the warden process: obeys orders, watches the tree, outlives the shim to end it.

    state      event                                report          next state
    waiting    order `Spawn`                        spawned         running
               order `Spawn`, but it cannot start   failed, gone    gone
               order `Stop`, or the shim died       gone            done
    running    order `Signal`: pass it on                           running
               the upstream exited                  exited          running
               the last process of the tree died    gone            gone
               order `Stop`                                         ending, with grace
               the shim died                                        ending, without grace
               the deputy died                                      ending, without grace
    ending     `Ending` signals a process           killed          ending
               the upstream exited                  exited          ending
               the shim died                                        ending, without grace
               the last process of the tree died    gone            done
    gone       order `Stop`, or the shim died                       done
    done       sends unsent reports for at most 1 s, runs `after_death` unless `Stop` was ordered,
               and exits

The state is spread over `_tree` (None while waiting), `Ending` (running or ending), `_told_gone`,
`_stop_ordered` and `_shim_is_alive`: the last two are events that may come in any state and in
either order.

Five things wake the loop: the order pipe, whose end is the shim's death; a pidfd of the shim,
because a child that the shim forked may hold the order pipe open (without pidfds: a look once a
second); a pipe whose end is the deputy's death; a pipe that SIGCHLD writes to; and the deadline of
`Ending`, as the poll's timeout. A full report pipe never blocks the loop: unsent reports are kept
and tried again. Nothing in this file runs in the shim.
"""

import os
import select
import time

from subluminal.supervise import deputy as deputies
from subluminal.supervise.ending import Ending
from subluminal.supervise.signals import posix
from subluminal.supervise.starting import CannotStart, start
from subluminal.supervise.tree import Tree, signal_process
from subluminal.supervise.wire import (
    EXITED,
    FAILED,
    GONE,
    SPAWNED,
    Frames,
    Report,
    Signal,
    Spawn,
    Stop,
    decode_order,
    encode_report,
)
from subluminal.system.adoption import maybe_watch
from subluminal.system.process import exists

AFTER_DEATH_S = 10.0
"""How long the `after_death` program may take before it is killed."""
_LOOK_AT_SHIM_MS = 1_000
"""Without a pidfd: how often to look whether the shim lives."""
_LOOK_AGAIN_MS = 50
"""Poll interval for what no descriptor shows: a full report pipe, a hanging last program."""
_LAST_WORDS_S = 1.0
"""How long a warden that is done waits for a living shim to read its last reports."""


class WardenLoop:
    """The state of one warden; see the table above."""

    def __init__(
        self,
        orders: int,
        reports: int,
        stdio: tuple[int, int, int],
        *,
        news: int,
        deputy: int,
        shim: int,
        mark: str,
        adopts: bool,
        keep_ignored: tuple[int, ...],
    ) -> None:
        self._orders = orders
        self._reports = reports
        self._stdio = stdio
        self._news = news
        self._mark = mark
        self._adopts = adopts
        self._keep_ignored = keep_ignored
        self._frames = Frames()
        self._unsent = bytearray()
        self._tree: Tree | None = None
        self._ending: Ending | None = None
        self._grace_s = 0.0
        self._after_death: list[bytes] = []
        self._stop_ordered = False
        self._shim_is_alive = True
        self._told_gone = False
        self._why_ended = ""
        """why the warden ended the upstream by itself, or empty"""
        self._poll = select.poll()
        self._poll.register(orders, select.POLLIN)
        self._children = _wake_on_child_death()
        self._poll.register(self._children, select.POLLIN)
        self._deputy = deputy
        self._deputy_is_alive = True
        self._poll.register(deputy, select.POLLIN)
        self._shim = shim
        self._shim_watch = maybe_watch(shim)
        if self._shim_watch is not None:
            self._poll.register(self._shim_watch, select.POLLIN)

    def run(self) -> None:
        """Runs until the tree is gone and the shim has ordered `Stop` or died."""
        while not self._is_done():
            self._wait()
            self._collect()
            self._read_orders()
            self._end()
            self._send()
        self._say_last_words()
        if not self._stop_ordered and self._after_death:
            self._run_after_death()

    def _is_done(self) -> bool:
        if self._shim_is_alive and not self._stop_ordered:
            return False
        return self._tree is None or self._tree.is_gone

    def _wait(self) -> None:
        timeout_ms = None
        if self._ending and self._ending.deadline is not None:
            timeout_ms = max(0, int((self._ending.deadline - time.monotonic()) * 1000) + 1)
        if self._shim_watch is None and timeout_ms is None:
            timeout_ms = _LOOK_AT_SHIM_MS
        if self._unsent:
            timeout_ms = min(timeout_ms or _LOOK_AGAIN_MS, _LOOK_AGAIN_MS)
        ready = {fd for fd, _ in self._poll.poll(timeout_ms)}
        if self._children in ready:
            os.read(self._children, 4096)
        if self._deputy in ready:
            self._lose_deputy()
        if self._shim_watch in ready or (self._shim_watch is None and not exists(self._shim)):
            # Read what the shim ordered before it died. A child of it may keep the pipe open.
            self._read_orders()
            self._lose_shim()

    def _collect(self) -> None:
        """Reaps dead processes. Reports how the upstream ended, and when the whole tree is gone."""
        tree = self._tree
        if tree is None or self._told_gone:
            return
        status = tree.collect()
        if status is not None:
            code = os.waitstatus_to_exitcode(status)
            exit_code, signum = (None, -code) if code < 0 else (code, None)
            self._report(Report(EXITED, tree.upstream, exit_code, signum, detail=self._why_ended))
        if tree.is_gone:
            self._tell_gone()

    def _read_orders(self) -> None:
        while self._shim_is_alive:
            try:
                data = os.read(self._orders, 65536)
            except BlockingIOError:
                return
            for frame in self._frames.feed(data):
                self._obey(decode_order(frame))
            if not data:
                self._lose_shim()

    def _obey(self, order: Spawn | Stop | Signal) -> None:
        if isinstance(order, Spawn):
            self._spawn(order)
        elif isinstance(order, Stop):
            self._stop_ordered = True
            self._begin_end(self._grace_s if order.grace_ms is None else order.grace_ms / 1000)
        elif self._tree:
            self._tree.signal_group(order.signum)

    def _spawn(self, order: Spawn) -> None:
        self._grace_s = order.grace_ms / 1000
        self._after_death = order.after_death
        try:
            pid = start(order, self._stdio, self._keep_ignored)
        except CannotStart as problem:
            self._report(Report(FAILED, 0, problem.exit_code, detail=str(problem)))
            self._tell_gone()
        else:
            self._tree = Tree(pid, adopts=self._adopts, mark=self._mark)
            self._ending = Ending(self._tree)
            self._report(Report(SPAWNED, pid))
            self._tell_deputy(b"%d\n" % pid)
            if not self._deputy_is_alive:
                self._begin_end(0.0)
        # Our copies would keep the upstream's output open after its end.
        for fd in self._stdio:
            os.close(fd)

    def _lose_shim(self) -> None:
        """Ends the tree without grace: its input is closed, and nobody reads its output."""
        if not self._shim_is_alive:
            return
        self._shim_is_alive = False
        self._poll.unregister(self._orders)
        if self._shim_watch is not None:
            self._poll.unregister(self._shim_watch)
        if self._deputy_is_alive:
            signal_process(os.getppid(), posix.SIGCONT)  # somebody may have stopped it
        self._begin_end(0.0)

    def _lose_deputy(self) -> None:
        """Ends the tree: nobody would end it if the upstream stopped us and the shim died."""
        self._deputy_is_alive = False
        self._poll.unregister(self._deputy)
        if self._shim_is_alive and not self._stop_ordered:
            self._why_ended = "was ended by its warden, because the deputy was killed"
        self._begin_end(0.0)

    def _tell_deputy(self, news: bytes) -> None:
        try:
            os.write(self._news, news)
        except BrokenPipeError:
            return  # the deputy is dead, which its own pipe shows

    def _begin_end(self, grace_s: float) -> None:
        if self._ending:
            self._ending.begin(time.monotonic(), grace_s)

    def _end(self) -> None:
        if self._ending and self._tree and not self._tree.is_gone:
            for report in self._ending.step(time.monotonic()):
                self._report(report)

    def _tell_gone(self) -> None:
        for report in self._ending.summary() if self._ending else ():
            self._report(report)
        self._told_gone = True
        self._tell_deputy(deputies.GONE)
        self._report(Report(GONE, self._tree.upstream if self._tree else 0))

    def _report(self, report: Report) -> None:
        self._unsent += encode_report(report)

    def _send(self) -> None:
        """Sends as much as the pipe accepts; a shim that does not read must not delay the end."""
        if not self._unsent:
            return
        try:
            del self._unsent[: os.write(self._reports, self._unsent)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._unsent.clear()

    def _say_last_words(self) -> None:
        if not self._told_gone:
            self._tell_gone()
        deadline = time.monotonic() + _LAST_WORDS_S
        poll = select.poll()
        poll.register(self._reports, select.POLLOUT)
        while self._unsent and (left := deadline - time.monotonic()) > 0:
            poll.poll(left * 1000)
            self._send()

    def _run_after_death(self) -> None:
        """Runs the `after_death` program with the shim's environment; kills it if it hangs."""
        null = os.open(os.devnull, os.O_RDWR)
        order = Spawn(self._after_death, dict(os.environb), b"", 0, [])
        try:
            tree = Tree(start(order, (null, null, null), self._keep_ignored), adopts=self._adopts)
        except CannotStart:
            return  # the shim is dead, so there is nobody to report it to
        deadline = time.monotonic() + AFTER_DEATH_S
        while not tree.is_gone:
            self._poll.poll(_LOOK_AGAIN_MS)
            tree.collect()
            if time.monotonic() > deadline:
                tree.kill()


def _wake_on_child_death() -> int:
    """Returns a descriptor that becomes readable when a child dies."""
    wake, tell = os.pipe()
    for fd in (wake, tell):
        os.set_blocking(fd, False)
    posix.set_wakeup_fd(tell, warn_on_full_buffer=False)
    # The handler does nothing: without one, the wake-up descriptor would not be written to.
    posix.signal(posix.SIGCHLD, lambda *_: None)
    return wake
