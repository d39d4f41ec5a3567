"""Which events of which shim the ledger holds: (shim_id, n) is an event's key on every road (journal-first).

A high-water mark and the gaps below it say exactly what is there, at the price of one row a shim.
"""

from collections.abc import Iterable

import apsw
from msgspec import Struct, field

from subluminal.journal.chain import link, seed


class Segment(Struct):
    """Consecutive events of one shim that are stored together."""

    shim: "ShimState"
    run_id: str
    first_n: int
    prev: bytes
    """the chain's hash before the first one, in hex as events carry it"""
    next_n: int = 0
    """the number of the event that would follow"""
    last_prev: str = ""
    """the chain's hash before the last one, as that event says"""
    last_ms: int = 0
    chained: list[bytes] = field(default_factory=list)
    """the events as they are chained and stored"""

    def head(self) -> bytes:
        """The chain's hash after the last event. Verify computes all; ingest needs only this."""
        return link(self.last_prev.encode(), self.chained[-1])


class ShimState(Struct):
    """What the ledger knows of one shim, and what a batch adds to it."""

    id: int
    shim_id: str
    run_id: str
    is_chained_here: bool
    last_n: int
    head: bytes
    gaps: list[tuple[int, int]]
    """missing numbers below last_n, as inclusive spans in order"""
    is_new: bool = False
    gaps_changed: bool = False
    segment: Segment | None = None
    """the one that the batch is adding to"""

    def has(self, n: int) -> bool:
        """Whether event `n` is stored already."""
        return n <= self.last_n and not any(first <= n <= last for first, last in self.gaps)

    def note(self, n: int) -> None:
        """Marks event `n`, which is not stored yet, as stored."""
        if n == self.last_n + 1:
            self.last_n = n
            return
        self.gaps_changed = True
        if n > self.last_n:
            self.gaps.append((self.last_n + 1, n - 1))
            self.last_n = n
        else:
            self.gaps = [part for gap in self.gaps for part in _without(gap, n)]


def _without(gap: tuple[int, int], n: int) -> list[tuple[int, int]]:
    first, last = gap
    if not first <= n <= last:
        return [gap]
    return [part for part in ((first, n - 1), (n + 1, last)) if part[0] <= part[1]]


class Shims:
    """Every shim that a batch meets, from memory or from the ledger."""

    MAX_REMEMBERED = 10_000

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._states: dict[str, ShimState] = {}
        self._next_id = 1 + next(connection.execute("SELECT ifnull(max(id), 0) FROM shims"))[0]

    def get(self, shim_id: str, run_id: str, *, is_chained_here: bool) -> ShimState:
        """The state of a shim; a new one starts at the beginning of its chain."""
        state = self._states.get(shim_id)
        if state is None:
            state = self._load(shim_id) or self._create(shim_id, run_id, is_chained_here)
            self._states[shim_id] = state
        return state

    def settle(self, touched: Iterable[ShimState]) -> None:
        """A batch was committed: what it added is what there is."""
        for state in touched:
            state.is_new = state.gaps_changed = False
            state.segment = None
        if len(self._states) > self.MAX_REMEMBERED:
            self._states.clear()

    def _create(self, shim_id: str, run_id: str, is_chained_here: bool) -> ShimState:
        head = seed(shim_id)
        state = ShimState(self._next_id, shim_id, run_id, is_chained_here, 0, head, [], is_new=True)
        self._next_id += 1
        return state

    def _load(self, shim_id: str) -> ShimState | None:
        row = self._connection.execute(
            "SELECT id, run_id, is_chained_here, last_n, head FROM shims WHERE shim_id = ?",
            (shim_id,),
        ).fetchone()
        if row is None:
            return None
        gaps = [
            (first, last)
            for first, last in self._connection.execute(
                "SELECT first_n, last_n FROM gaps WHERE shim = ? ORDER BY first_n", (row[0],)
            )
        ]
        shim, run_id, is_chained_here, last_n, head = row
        return ShimState(
            shim, shim_id, run_id, bool(is_chained_here), last_n, head.hex().encode(), gaps
        )
