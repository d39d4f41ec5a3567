"""What one transaction will write: rows, chained events, damaged lines. Data only."""

import hashlib
from bisect import bisect_right, insort
from typing import NamedTuple

from msgspec import Struct, field

from subluminal.contracts.events import Event, PolicyLoaded, RunEnd, RunStart, ToolsListed
from subluminal.journal.chain import link
from subluminal.ledger.ingest.rows import (
    Call,
    ControlRow,
    EndAhead,
    HintRow,
    IntentRow,
    Previews,
    RollupKey,
)


class RunDelta(Struct):
    """What a batch adds to one run."""

    seen: Event
    """an event of the run; its identity is stored if no run_start ever arrives"""
    first_ms: int
    last_ms: int
    calls: int = 0
    starts: list[RunStart] = field(default_factory=list)
    ends: list[RunEnd] = field(default_factory=list)


class ControlAct(NamedTuple):
    """A row about a person's act, and the event that it comes from."""

    row: ControlRow
    shim: int
    n: int


class Batch:
    """The rows that a batch of events adds or changes."""

    def __init__(self) -> None:
        self.new_calls: list[Call] = []
        self.changed_calls: dict[int, Call] = {}
        """calls of earlier batches, by row id"""
        self.counted_before: dict[int, RollupKey] = {}
        """the rollup in which the ledger counts a changed call now"""
        self.previews: dict[int, Previews] = {}
        self.hints: dict[int, HintRow] = {}
        self.intents: dict[int, IntentRow] = {}
        self.proposals: list[tuple[str | None, str | None, int]] = []
        """nonce and principal of intents of earlier batches, and the row id of the call"""
        self.runs: dict[str, RunDelta] = {}
        self.policies: list[tuple[PolicyLoaded, int]] = []
        """policies that came into force, and when, in milliseconds"""
        self.listings: list[tuple[ToolsListed, int]] = []
        """tool lists, and when they were seen, in milliseconds"""
        self.acts: list[ControlAct] = []
        """approvals asked and answered, grants refused, switches moved"""
        self.grant_uses: list[tuple[str, int, int]] = []
        """grant id, row id of the call that it let pass, time in milliseconds"""
        self.ends_ahead: dict[tuple[str, str], EndAhead] = {}
        """ends whose call has not begun here, by shim_id and call_id"""
        self.ends_met: list[tuple[str, str]] = []
        """ends of earlier batches whose call has begun in this one"""
        self.first_new_id = 0
        """row id of the batch's first new call; calls with lower ids are from earlier batches"""


class Segment(Struct):
    """Consecutive events of one shim that are stored together."""

    shim: "ShimState"
    run_id: str
    first_n: int
    prev: bytes
    """the chain's hash before the first event, in hex as events carry it"""
    next_n: int = 0
    """the number of the event that would follow"""
    last_prev: str = ""
    """the chain's hash before the last event, as that event states it"""
    last_ms: int = 0
    chained: list[bytes] = field(default_factory=list)
    """the events in their chained form, which is the stored form"""

    def head(self) -> bytes:
        """The chain's hash after the last event. (Verify computes all hashes; ingest only this.)"""
        return link(self.last_prev.encode(), self.chained[-1])


class ShimState(Struct):
    """Which events of one shim are stored, and what the batch adds to them."""

    id: int
    shim_id: str
    run_id: str
    is_chained_here: bool
    """whether the ledger chains this shim's events, because they arrive without `prev` or `n`"""
    last_n: int
    head: bytes
    gaps: list[tuple[int, int]]
    """numbers below last_n that are missing, as inclusive spans in ascending order"""
    lost_gaps: set[int] = field(default_factory=set)
    """first numbers of the stored gaps that the batch closes or changes"""
    new_gaps: set[tuple[int, int]] = field(default_factory=set)
    """gaps that the batch opens, or leaves of a changed one"""
    segment: Segment | None = None
    """the segment that the batch is adding to"""

    def has(self, n: int) -> bool:
        """Whether event `n` is stored already."""
        return n <= self.last_n and self._gap_at(n) is None

    def note(self, n: int) -> None:
        """Marks event `n` as stored. It must not be stored yet."""
        if n == self.last_n + 1:
            self.last_n = n
        elif n > self.last_n:
            self._open_gap(self.last_n + 1, n - 1)
            self.last_n = n
        else:
            index = self._gap_at(n)
            assert index is not None  # `has` said that it is missing
            first, last = self.gaps.pop(index)
            if (first, last) in self.new_gaps:
                self.new_gaps.remove((first, last))
            else:
                self.lost_gaps.add(first)
            self._open_gap(first, n - 1)
            self._open_gap(n + 1, last)

    def settle(self) -> None:
        """Called after a commit: what the batch added is stored now."""
        self.lost_gaps.clear()
        self.new_gaps.clear()
        self.segment = None

    def _gap_at(self, n: int) -> int | None:
        """The index of the gap that `n` is in."""
        index = bisect_right(self.gaps, n, key=_first) - 1
        return index if index >= 0 and self.gaps[index][1] >= n else None

    def _open_gap(self, first: int, last: int) -> None:
        if first <= last:
            insort(self.gaps, (first, last))
            self.new_gaps.add((first, last))


class Damaged(Struct):
    """Lines that are not events, and where they stood."""

    origin: str
    offset: int
    reason: str
    """what is wrong with the first line"""
    head: bytes
    """the beginning of the first line"""
    length: int
    """size in bytes, newlines included"""
    digest: bytes
    """SHA-256 of these bytes"""
    lines: int = 1


class Stretch:
    """Damaged lines that stand next to each other, while more of them are found."""

    def __init__(self, damaged: Damaged, line: bytes) -> None:
        self._damaged = damaged
        self._hash = hashlib.sha256(line + b"\n")

    def is_next(self, origin: str, offset: int) -> bool:
        """Whether a line at this place follows directly."""
        damaged = self._damaged
        return origin == damaged.origin and offset == damaged.offset + damaged.length

    def add(self, line: bytes) -> None:
        """Adds the line that follows."""
        self._damaged.lines += 1 if line else 0
        self._damaged.length += len(line) + 1
        self._hash.update(line)
        self._hash.update(b"\n")

    def close(self) -> None:
        """Writes the hash of all lines."""
        self._damaged.digest = self._hash.digest()


def _first(gap: tuple[int, int]) -> int:
    return gap[0]
