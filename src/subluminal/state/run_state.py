"""The door to the state of a run: its lock, its counters, and the few facts its shims share (shared-runs).

Whatever changes something needs the lock (`with state.locked():`), so that a caller can make
several changes one step; the rest does not. What the facts mean is known to `core`.
"""

from enum import IntEnum
from typing import NamedTuple, Self

from subluminal import clock
from subluminal.contracts.vocabulary import RunStatus
from subluminal.state import layout
from subluminal.state.errors import StateBusy
from subluminal.state.lock import RunLock
from subluminal.state.shared_counters import SharedCounters
from subluminal.state.shims import Shim, ShimTable
from subluminal.state.storage import StateFile, open_or_create
from subluminal.state.termination import Termination, TerminationLatch

_FAILURES = (None, RunStatus.CANCELLED, RunStatus.FAILED)
"""From harmless to worst."""


class Total(IntEnum):
    """What is counted over all shims of a run."""

    CALLS_ALLOWED = 0
    CALLS_BLOCKED = 1
    CALLS_THROTTLED = 2
    ERRORS = 3


class Totals(NamedTuple):
    """The totals of a run. `calls_total` is a sum (shared-runs), so it is not stored and cannot drift."""

    calls_total: int
    calls_allowed: int
    calls_blocked: int
    calls_throttled: int
    errors_total: int


class RunState:
    """One run. A process opens a run once, and uses it from one thread (see `lock`)."""

    def __init__(self, file: StateFile, lock: RunLock) -> None:
        self._file = file
        self._words = file.words
        self._lock = lock
        self._shims = ShimTable(file)
        self._latch = TerminationLatch(file)
        self._owed: list[Total] = []
        self.path = file.path
        self.counters = SharedCounters(file, lock)

    @classmethod
    def open(cls, state_dir: str, run_id: str) -> Self:
        """Opens the state of a run, and makes it if this is the first shim.

        Raises:
            StateUnusable: the file cannot be made or opened, or is not a sound state file.
        """
        while True:
            file = open_or_create(state_dir, run_id)
            lock = RunLock(file)
            if _is_kept(file, lock):
                return cls(file, lock)
            file.close()

    def close(self) -> None:
        """Unmaps the file; the state stays on disk."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def locked(self) -> RunLock:
        """Returns the lock, to be used with `with`; entering it raises StateBusy after 50 ms."""
        return self._lock

    @property
    def incarnation(self) -> int:
        """A number of this file alone: one that is made after it is removed has another."""
        return int(self._words[layout.W_INCARNATION])

    def take_seq(self) -> int:
        """Returns the next sequence number of the run, from 1."""
        if not self._lock.held:
            self._lock.require()
        words = self._words
        words[layout.W_SEQ] = seq = words[layout.W_SEQ] + 1
        return seq

    def last_seq(self) -> int:
        """The last sequence number that was taken."""
        return int(self._words[layout.W_SEQ])

    def count(self, total: Total) -> None:
        """Adds one to a total, and what was owed before."""
        if not self._lock.held:
            self._lock.require()
        self._words[layout.W_TOTALS + total] += 1
        if self._owed:
            self._pay()

    def owe(self, total: Total) -> None:
        """Remembers one for a total while the lock is out of reach; our next turn adds it."""
        self._owed.append(total)

    def _pay(self) -> None:
        for total in self._owed:
            self._words[layout.W_TOTALS + total] += 1
        self._owed.clear()

    def totals(self) -> Totals:
        """The totals so far."""
        start = layout.W_TOTALS
        allowed, blocked, throttled, errors = self._words[start : start + len(Total)].tolist()
        return Totals(allowed + blocked + throttled, allowed, blocked, throttled, errors)

    def claim_start(self, wall_ms: int, mono_ms: int) -> bool:
        """True for one caller in the life of a run: the one that emits run_start."""
        self._lock.require()
        words = self._words
        if words[layout.W_STARTED_WALL_MS]:
            return False
        words[layout.W_STARTED_MONO_MS] = mono_ms
        # INVARIANT: stored last; a run has started when this is not zero.
        words[layout.W_STARTED_WALL_MS] = wall_ms
        return True

    def started_at(self) -> clock.Now | None:
        """Both clocks when the run started, or None."""
        wall_ms = self._words[layout.W_STARTED_WALL_MS]
        return clock.Now(wall_ms, self._words[layout.W_STARTED_MONO_MS]) if wall_ms else None

    def terminate(self, code: str, message: str) -> bool:
        """Ends the run for all its shims, for good. False if it already was: the first counts."""
        self._lock.require()
        return self._latch.set(code, message)

    def terminated(self) -> Termination | None:
        """Why the run was terminated, or None. Cheap enough to ask before every call."""
        return self._latch.get() if self._words[layout.W_TERMINATED] else None

    def attach(self, shim_id: str, pid: int, start_time: int) -> bool:
        """Enters a shim. True if the run had ended and is thereby open again.

        Raises:
            StateUnusable: MAX_SHIMS living shims are attached.
        """
        self._lock.require()
        self._shims.add(Shim(shim_id, pid, start_time))
        self._touch()
        was_ended = self.ended()
        self._words[layout.W_ENDED] = 0
        return was_ended

    def detach(self, shim_id: str) -> int:
        """Removes a shim, and dead ones. Returns how many live."""
        self._lock.require()
        self._pay()
        self._shims.drop(shim_id)
        self._touch()
        return len(self._shims.live())

    def live_shims(self) -> tuple[Shim, ...]:
        """The attached shims whose processes live."""
        return self._shims.live()

    def mark_ended(self) -> bool:
        """True for one caller until a shim reopens the run: the one that emits run_end."""
        self._lock.require()
        if self.ended():
            return False
        self._words[layout.W_ENDED] = 1
        return True

    def ended(self) -> bool:
        """Whether run_end was emitted, and no shim came after it."""
        return bool(self._words[layout.W_ENDED])

    def note_failure(self, kind: RunStatus) -> None:
        """Remembers CANCELLED or FAILED for the final run_end; the worst one stays."""
        self._lock.require()
        words = self._words
        words[layout.W_FAILURE] = max(words[layout.W_FAILURE], _FAILURES.index(kind))

    def failure(self) -> RunStatus | None:
        """The worst that was noted."""
        return _FAILURES[self._words[layout.W_FAILURE]]

    def _touch(self) -> None:
        self._words[layout.W_LAST_USED_MS] = clock.now().wall_ms


def _is_kept(file: StateFile, lock: RunLock) -> bool:
    """Marks the file as in use. False if `prune` removed it since it was opened."""
    try:
        with lock:
            file.words[layout.W_LAST_USED_MS] = clock.now().wall_ms
            return file.is_current()
    except StateBusy:
        # Whoever holds the lock uses the run, so it is not stale.
        return True
