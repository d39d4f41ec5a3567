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
from _thread import allocate_lock
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from subluminal.config.settings import Settings
from subluminal.contracts.call import ToolCall
from subluminal.core.enforcer import Enforcer
from subluminal.core.host import Host
from subluminal.core.ruling import Outcome, Ruling

TICK_EVERY_MS = 250
"""Shortest time between two checks of policies, settings and stops."""


class ThreadedHost(Host):
    """A host that threads, tasks and forked children may share."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tick_at_ms = 0
        self._ticking = allocate_lock()
        _hosts.add(self)

    def begin(self, call: ToolCall, args_text: bytes | None, session: str | None = None) -> Ruling:
        """Decides one call, as `Host.begin` does."""
        return self._claim(session).begin(call, args_text)

    def finish(self, ruling: Ruling, outcome: Outcome, at_ns: int | None = None) -> None:
        """Records how a call ended; does nothing in a forked child that inherited the call."""
        enforcer = ruling.enforcer
        if ruling.finished or enforcer.run.is_dropped:
            return
        enforcer.finish(ruling, outcome, at_ns)
        self._runs.release(enforcer)

    def tick(
        self, mono_ms: int, settle: Callable[[], None] = lambda: None, *, force: bool = False
    ) -> Settings | None:
        """Does what `Host.tick` does, in one thread at a time; other threads return at once."""
        if not self._ticking.acquire(blocking=False):
            return None
        try:
            self._tick_at_ms = mono_ms + TICK_EVERY_MS
            return super().tick(mono_ms, settle, force=force)
        finally:
            self._ticking.release()

    def _claim(self, session: str | None) -> Enforcer:
        mono_ms = time.monotonic_ns() // 1_000_000
        if mono_ms >= self._tick_at_ms:
            self.tick(mono_ms)
        run_id = self.run_id if session is None or self.run_is_fixed else session
        return self._runs.claim(run_id)

    def _after_fork(self) -> None:
        self._ticking = allocate_lock()
        self._tick_at_ms = 0
        self._policies.drop_inherited()
        self._runs.drop_inherited()


_hosts: "WeakSet[ThreadedHost]" = WeakSet()


def _renew_hosts() -> None:
    for host in list(_hosts):
        host._after_fork()


os.register_at_fork(after_in_child=_renew_hosts)
