"""A host for a process with threads, tasks or forks: an SDK inside an agent, an asynchronous door.

Four things differ from `Host`:

- Any thread may call any method. A call is decided under the run's lock, which is one lock for all
  processes and threads. Then it is journalled under a second lock, the run's `Turn`. No thread
  holds the second lock while it waits for the first. Waits are bounded (`Sharing.wait_ms`); when
  the bound is reached, `decision_on_error` applies.
- There is no loop, so `begin` ticks by itself, in the first thread that comes after 250 ms.
- A forked child drops what it inherited, and enters its runs again with a journal and a shim id of
  its own. Calls that the parent began are ended by the parent.
- Python may interrupt a thread inside of a host and run other code there: a signal handler, or a
  finalizer that ends a stream. No lock keeps a thread from itself, so what such code wants is put
  off until the thread is outside again. A call cannot be put off: `decision_on_error` applies.

A fork waits until no other thread is inside of a host, and nobody enters meanwhile. A child has
only the thread that forked: whatever another thread held just then, such as the lock of a module
that it was importing, would stay held in the child permanently.
"""

import os
import time
from _thread import LockType, allocate_lock, get_ident
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from weakref import WeakSet

from subluminal.config.settings import Settings
from subluminal.contracts.call import ToolCall
from subluminal.contracts.counters import Counters
from subluminal.contracts.decision import Decision
from subluminal.contracts.vocabulary import RunStatus, Taint
from subluminal.core.enforcer import Enforcer
from subluminal.core.host import Host
from subluminal.core.ruling import CallEnding, Ruling, asked_of
from subluminal.core.runs.failures import SERVED, Served
from subluminal.core.runs.run import Run
from subluminal.errors import SubluminalError
from subluminal.policy.snapshot import Snapshot
from subluminal.state.mutex import Mutex

TICK_EVERY_MS = 250
"""Shortest time between two checks of policies, settings and stops."""


HOLD_MS = 5_000
"""Longest wait of a call for its first policy, unless the host's own bound is shorter."""

_inside: set[int] = set()
"""threads that are inside of a host; one set for all hosts, because they share the locks of runs"""
_put_off: deque[Callable[[], None]] = deque()
"""what code wanted that interrupted such a thread"""


_gate: LockType | None = None
"""held while threads fork; None if none does"""
_forks = 0
"""number of threads that are forking"""
_FORK_WAIT_S = 5.0
"""Longest wait of a fork for threads that are inside of a host."""
_LOOK_S = 0.0002


@contextmanager
def _alone() -> Iterator[None]:
    """Marks this thread as inside of a host; then does what was put off meanwhile."""
    ident = get_ident()
    is_outermost = ident not in _inside
    try:
        _inside.add(ident)
        if _gate is not None and is_outermost:
            _await_forks(ident)
        yield
    finally:
        if is_outermost:
            _inside.discard(ident)
            if _put_off:
                _catch_up()


def _await_forks(ident: int) -> None:
    """Stays outside until no thread forks, and goes in again.

    INVARIANT: a thread says that it is inside before it looks at the gate, and a fork closes the
    gate before it looks who is inside. So one of the two sees the other.
    """
    while (gate := _gate) is not None:
        _inside.discard(ident)
        if gate.acquire(timeout=_FORK_WAIT_S):
            gate.release()
        _inside.add(ident)


def _catch_up() -> None:
    while _put_off:
        try:
            late = _put_off.popleft()
        except IndexError:  # another thread was faster
            return
        late()


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
        ident = get_ident()
        if ident in _inside:
            return self._interrupting(session).begin(call, args_text)
        # This is `_alone`, inlined: every call passes here and in `finish`.
        try:
            _inside.add(ident)
            if _gate is not None:
                _await_forks(ident)
            if self.offers.may_be_some():
                taken = self.take(call, session)
                if taken is not None:
                    return taken
            enforcer = self.claim(session)
            try:
                if enforcer.claims is not None:
                    call = enforcer.with_claims(call)
                return enforcer.begin(call, args_text)
            except BaseException:  # an interrupt: nobody will end the call
                self._runs.release(enforcer)
                raise
        finally:
            _inside.discard(ident)
            if _put_off:
                _catch_up()

    def finish(self, ruling: Ruling, outcome: CallEnding, at_ns: int | None = None) -> None:
        """Records how a call ended; does nothing in a forked child that inherited the call."""
        enforcer = ruling.enforcer
        ident = get_ident()
        if ident in _inside:
            at_ns = time.monotonic_ns() if at_ns is None else at_ns
            _put_off.append(partial(self.finish, ruling, outcome, at_ns))
            return
        try:
            _inside.add(ident)
            if _gate is not None:
                _await_forks(ident)
            if enforcer.run.is_dropped:
                return
            with self._runs.mutex:  # `first_end`, inlined
                was_ending, ruling.is_ending = ruling.is_ending, True
            if was_ending:
                return
            try:
                if ruling.handed is not None and not self._take_back(ruling):
                    ruling.finished = True
                    return
                enforcer.finish(ruling, outcome, at_ns)
                if ruling.handed is not None:
                    self._settle([ruling])
            finally:
                self._runs.release(enforcer)
        finally:
            _inside.discard(ident)
            if _put_off:
                _catch_up()

    def offer(self, ruling: Ruling, *, by_run: bool = False) -> None:
        """Offers an allowed call to later doors, as `Host.offer` does."""
        with _alone():
            super().offer(ruling, by_run=by_run)

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

    def refuse(
        self,
        call: ToolCall,
        reason: str,
        summary: str,
        session: str | None = None,
        by: Decision | None = None,
    ) -> Ruling:
        """Records and refuses a call, as `Host.refuse` does."""
        if get_ident() in _inside:
            return self._interrupting(session).refuse(call, reason, summary, by)
        with _alone():
            return super().refuse(call, reason, summary, session, by)

    def is_over(self, call: ToolCall, session: str | None = None) -> bool:
        """Whether a call is stopped, as `Host.is_over` finds out."""
        if get_ident() in _inside:
            return self._interrupting(session).over(asked_of(call)) is not None
        with _alone():
            return super().is_over(call, session)

    def taint(self, session: str | None = None) -> Taint:
        """Returns the level of a run; UNTRUSTED inside of another call of this very thread."""
        if get_ident() in _inside:
            return self._interrupting(session).levels.now()
        with _alone():
            return super().taint(session)

    def lower_taint(
        self, to: Taint, *, source: str, reason: str = "", session: str | None = None
    ) -> Taint:
        """Lowers a run, as `Host.lower_taint` does; inside of another call it raises."""
        if get_ident() in _inside:
            return self._interrupting(session).levels.lower(to, source)
        with _alone():
            return super().lower_taint(to, source=source, reason=reason, session=session)

    def _interrupting(self, session: str | None) -> Enforcer:
        return self._runs.interrupting(self.run_of(session))

    def tick(
        self, mono_ms: int, settle: Callable[[], None] = lambda: None, *, force: bool = False
    ) -> Settings | None:
        """Does what `Host.tick` does, in one thread at a time; other threads return at once.

        Nobody enters a run meanwhile, so that none is entered under policies that are going.
        """
        if not self._ticking.acquire(0):
            return None
        with _alone():
            return self._tick(mono_ms, settle, force)

    def _tick(self, mono_ms: int, settle: Callable[[], None], force: bool) -> Settings | None:
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
        if get_ident() in _inside:
            _put_off.append(partial(self.close, failure, served))
            return
        with _alone():
            super().close(failure, served)

    def leave_idle(self) -> None:
        """Leaves the runs that have no call under way; closes the host if that is all of them."""
        for run_id, enforcer in list(self._open.items()):
            if not enforcer.open_calls:
                self.end_run(run_id)
        if not self._open:
            self.close()

    def open_run(self, meta: dict[str, Any] | None = None, session: str | None = None) -> Run:
        """Enters a run, as `Host.open_run` does."""
        with _alone():
            return super().open_run(meta, session)

    def end_run(self, run_id: str, failure: RunStatus | None = None) -> None:
        """Leaves one run, as `Host.end_run` does."""
        if get_ident() in _inside:
            _put_off.append(partial(self.end_run, run_id, failure))
            return
        with _alone():
            super().end_run(run_id, failure)

    def health(self, state: str, **fields: Any) -> None:
        """Records a shim_health event, as `Host.health` does."""
        with _alone():
            super().health(state, **fields)

    def claim(self, session: str | None) -> Enforcer:
        """Returns the enforcer of a run and counts one open call, after changes were looked for."""
        if self._is_closed:
            raise SubluminalError("this guard or door is closed", hint="open another one")
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
        return self._runs.claim(self.run_id if session is None else self.run_of(session))

    def release(self, enforcer: Enforcer) -> None:
        """Counts the end of a call that `claim` counted as open."""
        self._runs.release(enforcer)

    @contextmanager
    def counters(self, session: str | None = None) -> Iterator[Counters]:
        """Gives a program the counters of a run, under the run's lock, to count for itself."""
        with _alone():
            enforcer = self.claim(session)
            try:
                with enforcer.run.state.locked():
                    yield enforcer.run.state.counters
            finally:
                self.release(enforcer)

    def add_policies(self, snapshots: Sequence[Snapshot]) -> None:
        """Puts policies into force, while no other thread changes policies or enters a run."""
        with _alone():
            if not self._runs.entry.acquire(self._runs.bound_s):
                raise SubluminalError("another thread is opening a run", hint="try again")
            try:
                super().add_policies(snapshots)
            finally:
                self._runs.entry.release()

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


def _before_fork() -> None:
    global _forks, _gate
    _forks += 1
    if _gate is None:
        gate = allocate_lock()
        gate.acquire()
        _gate = gate
    own, deadline = {get_ident()}, time.monotonic() + _FORK_WAIT_S
    while _inside - own and time.monotonic() < deadline:
        time.sleep(_LOOK_S)


def _after_fork_in_parent() -> None:
    global _forks, _gate
    _forks -= 1
    if not _forks and _gate is not None:
        gate, _gate = _gate, None
        gate.release()


def _renew_hosts() -> None:
    global _forks, _gate
    _forks, _gate = 0, None
    _inside.clear()
    _put_off.clear()
    for host in list(_hosts):
        try:
            host._after_fork()
        except OSError:
            continue  # a descriptor that another thread of the parent was just closing


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_renew_hosts
)
