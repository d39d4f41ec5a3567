"""What one transaction will write: rows, chained events, damaged lines. Data only."""

from typing import NamedTuple

from msgspec import Struct, field

from subluminal.contracts.events import Event, PolicyLoaded, RunEnd, RunStart, ToolsListed
from subluminal.journal.chain import link
from subluminal.ledger.ingest.rows import Call, ControlRow, HintRow, Previews, RollupKey


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
        self.runs: dict[str, RunDelta] = {}
        self.policies: list[tuple[PolicyLoaded, int]] = []
        """policies that came into force, and when, in milliseconds"""
        self.listings: list[tuple[ToolsListed, int]] = []
        """tool lists, and when they were seen, in milliseconds"""
        self.acts: list[ControlAct] = []
        """approvals asked and answered, grants refused, switches moved"""
        self.grant_uses: list[tuple[str, int, int]] = []
        """grant id, row id of the call that it let pass, time in milliseconds"""
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
    gaps_changed: bool = False
    segment: Segment | None = None
    """the segment that the batch is adding to"""

    def has(self, n: int) -> bool:
        """Whether event `n` is stored already."""
        return n <= self.last_n and not any(first <= n <= last for first, last in self.gaps)

    def note(self, n: int) -> None:
        """Marks event `n` as stored. It must not be stored yet."""
        if n == self.last_n + 1:
            self.last_n = n
            return
        self.gaps_changed = True
        if n > self.last_n:
            self.gaps.append((self.last_n + 1, n - 1))
            self.last_n = n
        else:
            self.gaps = [part for gap in self.gaps for part in _without(gap, n)]


class Damaged(Struct):
    """A line that is not an event, and where it stood."""

    origin: str
    offset: int
    reason: str
    head: bytes
    """the beginning of the line"""


def _without(gap: tuple[int, int], n: int) -> list[tuple[int, int]]:
    first, last = gap
    if not first <= n <= last:
        return [gap]
    return [part for part in ((first, n - 1), (n + 1, last)) if part[0] <= part[1]]
