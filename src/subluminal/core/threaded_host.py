"""A host for a process with threads, tasks or forks: an SDK inside an agent, an asynchronous door.

Three things differ from `Host`:

- Any thread may call any method. A call is decided under the run's lock, which is one lock for all
  processes and threads. Then it is journalled under a second lock, the run's `Turn`. No thread
  holds the second lock while it waits for the first. Waits are bounded (`Sharing.wait_ms`); when
  the bound is reached, `decision_on_error` applies.
- There is no loop, so `begin` ticks by itself, in the first thread that comes after 250 ms.
- A forked child drops what it inherited, and enters its runs again with a journal and a shim id of
  its own. Calls that the parent began are ended by the parent.
"""

import os
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from subluminal.config.settings import Settings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.vocabulary import RunStatus
from subluminal.core.enforcer import Enforcer
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding, Ruling
from subluminal.core.runs.failures import SERVED, Served
from subluminal.errors import SubluminalError
from subluminal.state.mutex import Mutex

TICK_EVERY_MS = 250
"""Shortest time between two checks of policies, settings and stops."""


HOLD_MS = 5_000
"""Longest wait of a call for its first policy, unless the host's own bound is shorter."""


class ThreadedHost(Host):
    """A host that threads, tasks and forked children may share."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tick_at_ms = 0
        self._ticking = Mutex()
        self._is_closed = False
        _hosts.add(self)

    def begin(self, call: ToolCall, args_text: bytes | None, session: str | None = None) -> Ruling:
        """Decides one call, as `Host.begin` does."""
        if self.offers.may_be_some():
            taken = self.take(call, session)
            if taken is not None:
                return taken
        enforcer = self.claim(session)
        try:
            return enforcer.begin(enforcer.with_claims(call), args_text)
        except BaseException:  # an interrupt: nobody will end the call
            self._runs.release(enforcer)
            raise

    def finish(self, ruling: Ruling, outcome: CallEnding, at_ns: int | None = None) -> None:
        """Records how a call ended; does nothing in a forked child that inherited the call."""
        enforcer = ruling.enforcer
        if enforcer.run.is_dropped or not self._runs.first_end(ruling):
            return
        try:
            if not self._take_back(ruling):
                ruling.finished = True
                return
            enforcer.finish(ruling, outcome, at_ns)
            if ruling.handed is not None:
                self._settle([ruling])
        finally:
            self._runs.release(enforcer)

    def withdraw(self, ruling: Ruling) -> bool:
        """Takes an offer back, as `Host.withdraw` does; one thread at a time, for each call."""
        if ruling.enforcer.run.is_dropped:
            return False
        if self._take_back(ruling):
            return True
        if self._runs.first_end(ruling):
            ruling.finished = True
            self._runs.release(ruling.enforcer)
        return False

    def tick(
        self, mono_ms: int, settle: Callable[[], None] = lambda: None, *, force: bool = False
    ) -> Settings | None:
        """Does what `Host.tick` does, in one thread at a time; other threads return at once.

        Nobody enters a run meanwhile, so that none is entered under policies that are going.
        """
        if not self._ticking.acquire(0):
            return None
        try:
            if not self._runs.entry.acquire(self._runs.bound_s):
                return None
            try:
                self._tick_at_ms = mono_ms + TICK_EVERY_MS
                return super().tick(mono_ms, settle, force=force)
            finally:
                self._runs.entry.release()
        finally:
            self._ticking.release()

    def close(self, failure: RunStatus | None = None, served: Served = SERVED) -> None:
        """Leaves every run; closes its files when the last of its calls has ended."""
        self._is_closed = True
        super().close(failure, served)

    def claim(self, session: str | None) -> Enforcer:
        """Returns the enforcer of a run and counts one open call, after changes were looked for."""
        if self._is_closed:
            raise SubluminalError("this host is closed", hint="open another one")
        mono_ms = time.monotonic_ns() // 1_000_000
        if mono_ms >= self._tick_at_ms:
            try:
                self.tick(mono_ms)
            except Exception as bug:  # noqa: BLE001 - the call is decided under what is in force
                self.report_bug(bug)
        if self._policies.loading:
            self.await_policies(min(HOLD_MS / 1000, self._runs.bound_s))
            if self._policies.loading:
                self.give_up_waiting()
        return self._runs.claim(self.run_of(session))

    def release(self, enforcer: Enforcer) -> None:
        """Counts the end of a call that `claim` counted as open."""
        self._runs.release(enforcer)

    def give_up_waiting(self) -> None:
        """Refuses calls, instead of holding them, until their policy is compiled."""
        if self._runs.entry.acquire(self._runs.bound_s):
            try:
                super().give_up_waiting()
            finally:
                self._runs.entry.release()

    def _after_fork(self) -> None:
        self._ticking = Mutex()
        self._tick_at_ms = 0
        try:
            self._runs.drop_inherited()
        finally:
            self._policies.drop_inherited()


_hosts: "WeakSet[ThreadedHost]" = WeakSet()


def _renew_hosts() -> None:
    for host in list(_hosts):
        try:
            host._after_fork()
        except OSError:
            continue  # a descriptor that another thread of the parent was just closing


os.register_at_fork(after_in_child=_renew_hosts)
