"""The state of a run: its lock, its counters, and the few facts that its shims share (shared-runs).

Changes need the lock (`with state.locked():`), so that a caller can make several changes as one
step. Reading does not need it. `core` decides what the facts mean.
"""

from binascii import crc32
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple, Self

from subluminal import clock
from subluminal.contracts.vocabulary import RunStatus
from subluminal.state import layout
from subluminal.state.errors import StateBusy, StateUnusable
from subluminal.state.latch import TextLatch
from subluminal.state.lock import RunLock, ThreadedRunLock
from subluminal.state.shared_counters import SharedCounters
from subluminal.state.shims import Shim, ShimTable
from subluminal.state.storage import StateFile, open_existing, open_or_create
from subluminal.state.taint import TaintState, TaintWord
from subluminal.state.termination import Termination, TerminationLatch

_FAILURES = (None, RunStatus.CANCELLED, RunStatus.FAILED)
"""The failures of a run, from harmless to worst; a state file holds the index."""

_LOST_MASK = (1 << 32) - 1

_UNREADABLE = Termination("STATE_DAMAGED", "the reason is unreadable: the run's state was damaged")
"""The end of a run that has an end, and no reason that can be read."""


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
        self._reason = TextLatch(
            file, layout.W_REASON, start=layout.REASON_TEXT, size_bytes=layout.REASON_BYTES
        )
        self._server_failure = TextLatch(
            file,
            layout.W_SERVER_FAILURE,
            start=layout.SERVER_FAILURE_TEXT,
            size_bytes=layout.SERVER_FAILURE_BYTES,
        )
        self._owed: list[tuple[Total, int]] = []
        self._ended_by: Termination | None = None
        self.path = file.path
        self.taint = TaintWord(file)
        """the level of the run; whoever changes it holds the lock"""
        self.counters = SharedCounters(file, lock, self.taint)

    @classmethod
    def open(
        cls,
        state_dir: str,
        run_id: str,
        *,
        threads: bool = False,
        wait_ms: int | None = None,
        create: bool = True,
    ) -> Self:
        """Opens the state of a run, and creates it if this is the first shim.

        Without `create`, a state that does not exist is an error. `threads` is True if several
        threads or hosts of this process use the run. For `wait_ms` see `RunLock`.

        Raises:
            StateUnusable: the file cannot be created or opened, or is not a valid state file.
        """
        while True:
            file = (open_or_create if create else open_existing)(state_dir, run_id)
            lock = ThreadedRunLock(file, wait_ms) if threads else RunLock(file, wait_ms)
            try:
                if _is_kept(file, lock):
                    return cls(file, lock)
            except StateUnusable:
                file.close()
                raise
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
        return int(self._whole_words()[layout.W_INCARNATION])

    def take_seq(self) -> int:
        """Returns the next sequence number of the run, from 1."""
        if not self._lock.held:
            self._lock.require()
        words = self._words
        words[layout.W_SEQ] = seq = words[layout.W_SEQ] + 1
        return seq

    def go_on_from(self, seq: int, totals: Mapping[Total, int]) -> None:
        """Continues the numbers of a run whose state was lost."""
        self._lock.require()
        self._words[layout.W_SEQ] = seq
        for total, number in totals.items():
            self._words[layout.W_TOTALS + total] = max(0, number)

    def last_seq(self) -> int:
        """Returns the last sequence number that was taken."""
        return int(self._words[layout.W_SEQ])

    def known_seq(self) -> int:
        """Returns the last sequence number without the lock; 0 if nobody can tell."""
        try:
            return int(self._whole_words()[layout.W_SEQ])
        except StateUnusable:
            return 0

    def count(self, total: Total) -> None:
        """Adds one to a total, and adds what is owed."""
        if not self._lock.held:
            self._lock.require()
        self._words[layout.W_TOTALS + total] += 1
        if self._owed:
            self._pay()

    def recount(self, was: Total, total: Total) -> None:
        """Counts a call under another total than the one that it was counted under."""
        self._lock.require()
        self._words[layout.W_TOTALS + was] -= 1
        self.count(total)

    def owe(self, total: Total, amount: int = 1) -> None:
        """Remembers to add to a total, when the lock is unavailable; the next `count` does."""
        self._owed.append((total, amount))

    def _pay(self) -> None:
        while self._owed:  # another thread may add to it meanwhile
            total, amount = self._owed.pop()
            self._words[layout.W_TOTALS + total] += amount

    def totals(self) -> Totals:
        """Returns the totals so far. Raises StateUnusable if the file was damaged."""
        start = layout.W_TOTALS
        words = self._whole_words()
        allowed, blocked, throttled, errors = words[start : start + len(Total)].tolist()
        errors += self.calls_lost()
        return Totals(allowed + blocked + throttled, allowed, blocked, throttled, errors)

    def calls_lost(self) -> int:
        """Returns how many calls `count_lost` has counted; they are errors too."""
        return int(self._words[layout.W_LOST]) & _LOST_MASK

    def count_lost(self, shim_id: str, calls: int) -> None:
        """Counts the calls that a killed shim left without an end; once for each shim.

        The process that counts may be killed too, and another one then counts again. So the number
        and the shim that was counted last are one word, and one store.
        """
        self._lock.require()
        word = self._words[layout.W_LOST]
        # 31 bits: a word has a sign. The lowest bit is set, because no word begins as counted.
        name = crc32(shim_id.encode()) >> 1 | 1
        if word >> 32 != name:
            self._words[layout.W_LOST] = name << 32 | ((word & _LOST_MASK) + calls)

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
        words = self._whole_words()
        wall_ms = words[layout.W_STARTED_WALL_MS]
        return clock.Now(wall_ms, words[layout.W_STARTED_MONO_MS]) if wall_ms else None

    def terminate(self, code: str, message: str) -> bool:
        """Ends the run permanently for all its shims.

        Returns False if it had ended before; the first reason stays.
        """
        self._lock.require()
        return self._latch.set(code, message)

    def terminated(self) -> Termination | None:
        """Returns why the run was terminated, or None. Cheap enough for every call."""
        if not self._lock.held and not self._file.is_whole():
            return self._ended_by  # what was known before the file was damaged
        if not self._words[layout.W_TERMINATED]:
            return None
        try:
            self._ended_by = self._latch.get()
        except StateUnusable:
            self._ended_by = _UNREADABLE
        return self._ended_by

    def _whole_words(self) -> memoryview:
        """Returns the words of the file, to be read without the lock. Raises StateUnusable."""
        if not self._lock.held and not self._file.is_whole():
            raise self._file.harm()
        return self._words

    def taint_state(self) -> TaintState:
        """Returns the level of the run and why; does not need the lock. Raises StateUnusable."""
        self._whole_words()
        return self.taint.state()

    def lower_unlocked(self, rank: int) -> int:
        """Lowers the level of the run while another process holds the lock (`state.taint`).

        Returns the rank before. Raises StateUnusable.
        """
        self._whole_words()
        before = self.taint.rank()
        self.taint.mark(rank)
        return before

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
        """Returns the attached shims whose processes live. Raises StateUnusable."""
        self._whole_words()
        return self._shims.live()

    def counter(self, shim_id: str) -> tuple[memoryview, int, Callable[[], bool]] | None:
        """Returns where an attached shim counts the events in its journal (`ShimTable.counter`).

        The function returns False if the file was cut: then nobody may count.
        """
        found = self._shims.counter(shim_id)
        return None if found is None else (*found, self._file.is_whole)

    def mark_ended(self) -> bool:
        """Returns True to the first caller since a shim attached, which must emit run_end."""
        self._lock.require()
        if self.ended():
            return False
        self._words[layout.W_ENDED] = 1
        return True

    def ended(self) -> bool:
        """Returns True if run_end was emitted, and no shim has attached since."""
        return bool(self._whole_words()[layout.W_ENDED])

    def note_failure(self, kind: RunStatus, reason: str = "") -> None:
        """Remembers CANCELLED or FAILED for the final run_end; the worst one stays.

        Of the reasons for FAILED, the first one stays.
        """
        self._lock.require()
        words = self._words
        words[layout.W_FAILURE] = max(words[layout.W_FAILURE], _FAILURES.index(kind))
        if kind is RunStatus.FAILED and reason:
            self._reason.set(reason.encode("utf-8", "replace"))

    def note_server(self, *, worked: bool, failure: bytes = b"") -> None:
        """Remembers that a server worked to its end, or how it failed; the first failure stays."""
        self._lock.require()
        if worked:
            self._words[layout.W_WORKED] = 1
        if failure:
            self._server_failure.set(failure)

    def failure(self) -> RunStatus | None:
        """Returns the worst status that was noted, or None.

        A run is FAILED too if a server of it failed, and none worked.
        """
        words = self._whole_words()
        noted = words[layout.W_FAILURE]
        if words[layout.W_SERVER_FAILURE] and not words[layout.W_WORKED]:
            return RunStatus.FAILED
        # A number that nobody noted is damage, and no better than the worst.
        return _FAILURES[noted] if 0 <= noted < len(_FAILURES) else RunStatus.FAILED

    def reason(self) -> str:
        """Returns the reason that was noted first for FAILED, or an empty text."""
        return (self._reason.get() or b"").decode("utf-8", "ignore")

    def server_failure(self) -> bytes:
        """Returns how a server of the run failed first, or nothing."""
        return self._server_failure.get() or b""

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
