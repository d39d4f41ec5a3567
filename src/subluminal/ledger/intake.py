"""Takes lines from any road, and decides of each: new, known already, or damaged.

What is new goes into the current batch; `store` commits the batch and what it came from in one
transaction. What is damaged is quarantined with its place, never dropped in silence, never fatal.
"""

from hashlib import sha256

import apsw
import msgspec
from msgspec import UNSET, Struct

from subluminal.contracts.codec import decode_event
from subluminal.contracts.events import Event
from subluminal.contracts.identity import Source
from subluminal.journal.chain import chained_form, link
from subluminal.journal.reading import Overlong
from subluminal.ledger.batch import Folder
from subluminal.ledger.deriving import MAX_INTEGER, unstorable
from subluminal.ledger.shims import Segment, Shims, ShimState
from subluminal.ledger.timestamps import to_ms

HEAD_BYTES = 256
"""How much of a quarantined line is kept."""


MAX_EVENTS = 6_000
MAX_BYTES = 16_777_216
"""One transaction takes no more than this, and so does the memory for it."""


class Damaged(Struct):
    """A line that is no event, and where it stood."""

    origin: str
    offset: int
    reason: str
    head: bytes


class FutureEvent(Struct, frozen=True):
    """An event of a type that we do not know. It belongs to the chain all the same."""

    ts: str
    run_id: str
    source: Source


_decode_future = msgspec.json.Decoder(FutureEvent).decode


class Intake:
    """The batch under way, and all that is remembered between batches."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._shims = Shims(connection)
        self.folder = Folder(connection)
        self.segments: list[Segment] = []
        self.touched: dict[int, ShimState] = {}
        self.damaged: list[Damaged] = []
        self.offsets: dict[str, int] = {}
        self.digests: set[bytes] = set()
        self.events = 0
        self.duplicates = 0
        self.bytes = 0

    @property
    def has_work(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.segments or self.damaged or self.offsets)

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return self.events + len(self.damaged) >= MAX_EVENTS or self.bytes >= MAX_BYTES

    def take(self, lines: list[bytes], origin: str, offset: int) -> None:
        """Adds the lines that stand at `offset` of `origin` to the batch."""
        for line in lines:
            if line:
                self._take_one(line, origin, offset)
            offset += len(line) + 1
            self.bytes += len(line)

    def take_overlong(self, piece: Overlong, origin: str) -> None:
        """Quarantines a line that is longer than any event."""
        length = piece.next_offset - piece.offset - 1
        reason = f"a line of {length} bytes is longer than any event"
        self.damaged.append(Damaged(origin, piece.offset, reason, piece.head[:HEAD_BYTES]))

    def settle(self) -> None:
        """The batch was committed: starts the next one."""
        self._shims.settle(self.touched.values())
        self.folder.settle()
        self.segments = []
        self.touched = {}
        self.damaged = []
        self.offsets = {}
        self.digests = set()
        self.events = self.duplicates = self.bytes = 0

    def _take_one(self, line: bytes, origin: str, offset: int) -> None:
        try:
            event = decode_event(line)
            known = event or _decode_future(line)
            at_ms = to_ms(known.ts)
            reason = None if event is None else unstorable(event)
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as error:
            reason = f"no event: {error}"
        if reason is None:
            reason = self._place(line, known, event, at_ms)
        if reason is not None:
            self.damaged.append(Damaged(origin, offset, reason, line[:HEAD_BYTES]))

    def _place(
        self, line: bytes, known: Event | FutureEvent, event: Event | None, at_ms: int
    ) -> str | None:
        """Adds an event to its shim's chain. Returns why it cannot be, or None."""
        source = known.source
        is_chained_here = source.prev is UNSET or source.n is UNSET
        state = self._shims.get(source.shim_id, known.run_id, is_chained_here=is_chained_here)
        if state.is_chained_here != is_chained_here:
            return "its shim's other events are chained, this one is not, or the reverse"
        n = source.n
        if n is UNSET:
            if not self._is_first_time(line):
                self.duplicates += 1
                return None
            n = state.last_n + 1
        elif not 0 < n <= MAX_INTEGER:
            return f"the number {str(n)[:24]} is out of range"
        elif state.has(n):
            self.duplicates += 1
            return None
        prev = state.head if source.prev is UNSET else source.prev.encode()
        if not _is_digest(prev):
            return "its `prev` is no SHA-256"
        form = chained_form(line)
        segment = self._segment(state, n, prev)
        segment.lines.append(line)
        segment.chained.append(form)
        segment.last_prev = prev
        if at_ms > segment.last_ms:
            segment.last_ms = at_ms
        if is_chained_here:
            state.head = link(prev, form)
        self.events += 1
        if event is not None:
            self.folder.fold(event, state.id, n, at_ms)
        return None

    def _segment(self, state: ShimState, n: int, prev: bytes) -> Segment:
        state.note(n)
        segment = state.segment
        if segment is None or segment.next_n != n:
            segment = state.segment = Segment(state, n, prev)
            self.segments.append(segment)
            self.touched[state.id] = state
        return segment

    def _is_first_time(self, line: bytes) -> bool:
        digest = sha256(line).digest()
        if digest in self.digests:
            return False
        known = self._connection.execute(
            "SELECT 1 FROM unnumbered WHERE digest = ?", (digest,)
        ).fetchone()
        if known is not None:
            return False
        self.digests.add(digest)
        return True


def _is_digest(text: bytes) -> bool:
    return len(text) == 64 and not text.translate(None, b"0123456789abcdef")
