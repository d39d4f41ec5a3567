"""The state of a run: its lock, its counters, and the few facts that its shims share (shared-runs).

Changes need the lock (`with state.locked():`), so that a caller can make several changes as one
step. Reading does not need it. `core` decides what the facts mean.
"""

from enum import IntEnum
from typing import NamedTuple, Self

from subluminal import clock
from subluminal.contracts.vocabulary import RunStatus
from subluminal.state import layout
from subluminal.state.errors import StateBusy
from subluminal.state.lock import RunLock, ThreadedRunLock
from subluminal.state.shared_counters import SharedCounters
from subluminal.state.shims import Shim, ShimTable
from subluminal.state.storage import StateFile, open_or_create
from subluminal.state.termination import Termination, TerminationLatch

_FAILURES = (None, RunStatus.CANCELLED, RunStatus.FAILED)
"""The failures of a run, from harmless to worst; a state file holds the index."""


class Total(IntEnum):
    """The numbers that are counted over all shims of a run."""

    CALLS_ALLOWED = 0
    CALLS_BLOCKED = 1
    CALLS_THROTTLED = 2
    ERRORS = 3


class Totals(NamedTuple):
    """The totals of a run. `calls_total` is the sum of the next three, and is not stored."""

    calls_total: int
    calls_allowed: int
    calls_blocked: int
    calls_throttled: int
    errors_total: int


class RunState:
    """The state of one run. Opened with `threads`, any thread of the process may use it."""

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
    def open(
        cls, state_dir: str, run_id: str, *, threads: bool = False, wait_ms: int | None = None
    ) -> Self:
        """Opens the state of a run, and creates it if this is the first shim.

        `threads` is True if several threads or hosts of this process use the run. For `wait_ms`
        see `RunLock`.

        Raises:
            StateUnusable: the file cannot be created or opened, or is not a valid state file.
        """
        while True:
            file = open_or_create(state_dir, run_id)
            lock = ThreadedRunLock(file, wait_ms) if threads else RunLock(file, wait_ms)
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
        """Returns the lock, for a `with` statement, which raises StateBusy after the bound."""
        return self._lock

    @property
    def incarnation(self) -> int:
        """The random number of this file: a new file of the same run has another one."""
        return int(self._words[layout.W_INCARNATION])

    def take_seq(self) -> int:
        """Returns the next sequence number of the run, from 1."""
        if not self._lock.held:
            self._lock.require()
        words = self._words
        words[layout.W_SEQ] = seq = words[layout.W_SEQ] + 1
        return seq

    def last_seq(self) -> int:
        """Returns the last sequence number that was taken."""
        return int(self._words[layout.W_SEQ])

    def count(self, total: Total) -> None:
        """Adds one to a total, and adds what is owed."""
        if not self._lock.held:
            self._lock.require()
        self._words[layout.W_TOTALS + total] += 1
        if self._owed:
            self._pay()

    def owe(self, total: Total) -> None:
        """Remembers to add one to a total, when the lock is unavailable; the next `count` does."""
        self._owed.append(total)

    def _pay(self) -> None:
        while self._owed:  # another thread may add to it meanwhile
            self._words[layout.W_TOTALS + self._owed.pop()] += 1

    def totals(self) -> Totals:
        """Returns the totals so far."""
        start = layout.W_TOTALS
        allowed, blocked, throttled, errors = self._words[start : start + len(Total)].tolist()
        return Totals(allowed + blocked + throttled, allowed, blocked, throttled, errors)

    def claim_start(self, wall_ms: int, mono_ms: int) -> bool:
        """Returns True to the first caller in the life of a run, which must emit run_start."""
        self._lock.require()
        words = self._words
        if words[layout.W_STARTED_WALL_MS]:
            return False
        words[layout.W_STARTED_MONO_MS] = mono_ms
        # INVARIANT: stored last. A run has started if this is not zero.
        words[layout.W_STARTED_WALL_MS] = wall_ms
        return True

    def started_at(self) -> clock.Now | None:
        """Returns both clocks at the start of the run, or None."""
        wall_ms = self._words[layout.W_STARTED_WALL_MS]
        return clock.Now(wall_ms, self._words[layout.W_STARTED_MONO_MS]) if wall_ms else None

    def terminate(self, code: str, message: str) -> bool:
        """Ends the run permanently for all its shims.

        Returns False if it had ended before; the first reason stays.
        """
        self._lock.require()
        return self._latch.set(code, message)

    def terminated(self) -> Termination | None:
        """Returns why the run was terminated, or None. Cheap enough for every call."""
        return self._latch.get() if self._words[layout.W_TERMINATED] else None

    def attach(self, shim_id: str, pid: int, start_time: int) -> bool:
        """Adds a shim. Returns True if the run had ended and is open again.

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
        """Removes a shim and every dead one; returns how many live."""
        self._lock.require()
        self._pay()
        self._shims.drop(shim_id)
        self._touch()
        return len(self._shims.live())

    def live_shims(self) -> tuple[Shim, ...]:
        """Returns the attached shims whose processes live."""
        return self._shims.live()

    def mark_ended(self) -> bool:
        """Returns True to the first caller since a shim attached, which must emit run_end."""
        self._lock.require()
        if self.ended():
            return False
        self._words[layout.W_ENDED] = 1
        return True

    def ended(self) -> bool:
        """Returns True if run_end was emitted, and no shim has attached since."""
        return bool(self._words[layout.W_ENDED])

    def note_failure(self, kind: RunStatus) -> None:
        """Remembers CANCELLED or FAILED for the final run_end; the worst one stays."""
        self._lock.require()
        words = self._words
        words[layout.W_FAILURE] = max(words[layout.W_FAILURE], _FAILURES.index(kind))

    def failure(self) -> RunStatus | None:
        """Returns the worst status that was noted, or None."""
        return _FAILURES[self._words[layout.W_FAILURE]]

    def _touch(self) -> None:
        self._words[layout.W_LAST_USED_MS] = clock.now().wall_ms


def _is_kept(file: StateFile, lock: RunLock) -> bool:
    """Marks the file as in use. Returns False if `prune` removed it since it was opened."""
    try:
        with lock:
            file.words[layout.W_LAST_USED_MS] = clock.now().wall_ms
            return file.is_current()
    except StateBusy:
        # The holder of the lock uses the run, so the file is not stale.
        return True
