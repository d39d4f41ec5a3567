"""Takes lines from journals and sockets, and sorts them: new, stored already, or damaged.

A new event goes into the current batch. `store` commits the batch, with the offsets that it was
read up to, in one transaction. A damaged line is quarantined with its origin, offset, length and
hash: it is never dropped silently, and never stops the ingest. A few damaged lines are noted one by
one; a long stretch of them is noted as one.
"""

from collections.abc import Callable
from hashlib import sha256
from itertools import islice

import msgspec
from msgspec import UNSET, Struct

from subluminal.contracts.codec import NO_EVENT, decode_event
from subluminal.contracts.events import Event
from subluminal.contracts.identity import Source
from subluminal.contracts.versions import is_newer_major
from subluminal.journal.chain import chained_end, chained_form, chained_start, link
from subluminal.journal.reading import Overlong
from subluminal.ledger.ingest.batch import Damaged, Segment, ShimState, Stretch
from subluminal.ledger.ingest.folding import Folder
from subluminal.ledger.ingest.lookups import Lookups
from subluminal.ledger.ingest.rows import MAX_INTEGER
from subluminal.ledger.ingest.shims import Shims
from subluminal.ledger.ingest.wire import CallDecision, CallEnd, CallStart, decode_call, lean
from subluminal.timestamps import parse_rfc3339

HEAD_BYTES = 256
"""How much of a quarantined line is kept, in bytes."""

MAX_EVENTS = 6_000
MAX_BYTES = 16_777_216
MAX_DAMAGED = 65_536
"""Bounds of one transaction, in events, in bytes of lines and in damaged lines: they bound its
memory, and the time that it takes."""
LINE_BYTES = 64
"""What every line counts besides its own bytes: also an empty line takes time."""

MAX_SINGLE = 64
"""Damaged lines of one transaction that are noted one by one. Further ones are joined with the line
before, if that is damaged too."""


class FutureEvent(Struct, frozen=True):
    """An event that only a newer version can read. It is part of the chain all the same."""

    ts: str
    run_id: str
    source: Source
    v: str = ""


_CHAINED_FORMS: dict[type, Callable[[bytes], bytes]] = {
    CallStart: chained_start,
    CallDecision: lambda line: line,
    CallEnd: chained_end,
}
_MAY_BEGIN = (b"{", b" ", b"\t", b"\r")
"""How JSON of an object may begin. Garbage is told by its first byte, which is quick."""
_decode_future = msgspec.json.Decoder(FutureEvent).decode


class Intake:
    """The current batch, and what is remembered between batches."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        self._shims = Shims(lookups)
        self.folder = Folder(lookups, self._shims.number_of)
        self.segments: list[Segment] = []
        self.touched: dict[int, ShimState] = {}
        self.damaged: list[Damaged] = []
        self.damaged_lines = 0
        self._stretch: Stretch | None = None
        """the last entry of `damaged`, if lines may still be added to it"""
        self.offsets: dict[str, int] = {}
        """how far each journal file was read, in bytes"""
        self.digests: set[bytes] = set()
        """SHA-256 of each event without a number"""
        self.events = 0
        self.newer_events = 0
        """events whose MAJOR version is newer than ours: they are kept, but give no rows"""
        self.duplicates = 0
        self.bytes = 0
        self._current: Segment | None = None
        """the segment of the last event, if the next events may simply follow in it"""
        self._version = ""
        """version of the Pack that the last event names; the next ones must name it too"""

    @property
    def has_work(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.segments or self.damaged or self.offsets)

    @property
    def is_full(self) -> bool:
        """Whether it is time to commit."""
        return (
            self.events + len(self.damaged) >= MAX_EVENTS
            or self.bytes >= MAX_BYTES
            or self.damaged_lines >= MAX_DAMAGED
        )

    def take(self, lines: list[bytes], origin: str, offset: int) -> None:
        """Adds lines to the batch. The first one stands at `offset` of `origin`."""
        self._current = None
        index = counted = 0
        while index < len(lines):
            line = lines[index]
            reason = self._take_one(line)
            if reason is not None:
                # Each line is measured once, however many are damaged.
                offset += sum(map(len, lines[counted:index])) + index - counted
                counted = index
                self._quarantine(line, origin, offset, reason)
            index = self._take_following(lines, index + 1)
        self.bytes += sum(map(len, lines)) + LINE_BYTES * len(lines)

    def take_overlong(self, piece: Overlong, origin: str) -> None:
        """Quarantines a line that is longer than any event."""
        size = piece.next_offset - piece.offset
        reason = f"a line of {size - 1} bytes is longer than any event"
        head = piece.head[:HEAD_BYTES]
        self._add_damaged(Damaged(origin, piece.offset, reason, head, size, piece.digest))
        self.bytes += size

    def close_stretch(self) -> None:
        """Finishes the entry for the last damaged lines. Called before a commit."""
        if self._stretch is not None:
            self._stretch.close()
            self._stretch = None

    def settle(self) -> None:
        """Called after a commit: starts the next batch."""
        self._shims.settle(self.touched.values())
        self.folder.settle()
        self.segments = []
        self.touched = {}
        self.damaged = []
        self._stretch = None
        self.offsets = {}
        self.digests = set()
        self.events = self.duplicates = self.bytes = self.damaged_lines = self.newer_events = 0
        self._current = None

    def _quarantine(self, line: bytes, origin: str, offset: int, reason: str) -> None:
        """Notes a damaged line. Of an empty line, notes only that it belongs to a stretch."""
        if self._stretch is not None and self._stretch.is_next(origin, offset):
            self._stretch.add(line)
            self.damaged_lines += 1 if line else 0
            return
        if not line:
            return
        digest = sha256(line + b"\n").digest()
        self._add_damaged(Damaged(origin, offset, reason, line[:HEAD_BYTES], len(line) + 1, digest))
        if len(self.damaged) >= MAX_SINGLE:
            self._stretch = Stretch(self.damaged[-1], line)

    def _add_damaged(self, damaged: Damaged) -> None:
        self.close_stretch()
        self.damaged.append(damaged)
        self.damaged_lines += 1

    def _take_following(self, lines: list[bytes], index: int) -> int:
        """Adds lines as long as each is an event of a call, and the next one of its shim and run.

        Nearly all are, so this is the ledger's hot loop. Returns the index of the first line that
        is not, or that is damaged; `_take_one` handles that line.
        """
        segment = self._current
        if segment is None or segment.next_n <= segment.shim.last_n:
            return index
        state, n = segment.shim, segment.next_n
        shim, shim_id, run_id = state.id, state.shim_id, segment.run_id
        folds, append = self.folder.folds, segment.chained.append
        version = self._version
        ts, at_ms = "", 0
        second, second_ms = "", 0
        last_prev, last_ms = "", 0
        try:
            for line in islice(lines, index, None):
                event = decode_call(line)
                source = event.source
                prev = source.prev
                if (
                    source.n != n
                    or prev is None
                    or event.v != version
                    or source.shim_id != shim_id
                    or event.run_id != run_id
                ):
                    break
                if event.ts != ts:
                    ts = event.ts
                    # Same as parse_rfc3339, without a call for each event of the same second.
                    if ts[:20] == second and ts[23:] == "Z":
                        at_ms = second_ms + int(ts[20:23])
                    else:
                        at_ms = parse_rfc3339(ts)
                        if ts[19:20] == "." and ts[23:] == "Z":
                            second, second_ms = ts[:20], at_ms - int(ts[20:23])
                if not line.isascii():
                    line.decode()  # a skipped field may hold bytes that are not text
                kind = type(event)
                folds[kind](event, shim, n, at_ms)
                append(_CHAINED_FORMS[kind](line))
                last_prev, last_ms = prev, at_ms
                n += 1
        except NO_EVENT:
            # The line is damaged, or an event of another kind: `_take_one` tells which.
            pass
        taken = n - segment.next_n
        if taken:
            segment.last_prev, segment.last_ms = last_prev, last_ms
            segment.next_n = n
            state.last_n = n - 1
            self.events += taken
        return index + taken

    def _take_one(self, line: bytes) -> str | None:
        """Adds any line. Returns what is wrong with the line, or None."""
        self._current = None
        if line[:1] not in _MAY_BEGIN:
            return "not an event: it does not begin with `{`"
        try:
            event = decode_event(line)
            if not line.isascii():
                line.decode()  # a skipped field may hold bytes that are not text
            if event is None:
                future = _decode_future(line)
                before = self.events
                problem = self._place(line, future, None)
                self.newer_events += (self.events - before) * is_newer_major(future.v)
                return problem
            return self._place(line, event, event)
        except NO_EVENT as error:
            return f"not an event: {error}"

    def _append(self, segment: Segment, line: bytes, source: Source, at_ms: int) -> None:
        state, form = segment.shim, chained_form(line)
        segment.chained.append(form)
        segment.next_n += 1
        segment.last_ms = at_ms
        if source.prev is UNSET:
            segment.last_prev = state.head.decode()
            state.head = link(state.head, form)
        else:
            segment.last_prev = source.prev
        self.events += 1

    def _place(self, line: bytes, known: Event | FutureEvent, event: Event | None) -> str | None:
        """Adds an event wherever it belongs. Returns why it cannot be added, or None."""
        source, at_ms = known.source, parse_rfc3339(known.ts)
        is_chained_here = source.prev is UNSET or source.n is UNSET
        state = self._shims.get(source.shim_id, known.run_id, is_chained_here=is_chained_here)
        if state.is_chained_here != is_chained_here:
            return "some events of its shim are chained and others are not"
        n = state.last_n + 1 if source.n is UNSET else source.n
        if not 0 < n <= MAX_INTEGER:
            return f"the number {str(n)[:24]} is out of range"
        if state.has(n) or (source.n is UNSET and not self._is_first_time(line)):
            self.duplicates += 1
            return None
        prev = state.head if source.prev is UNSET else source.prev.encode()
        if not _is_digest(prev):
            return "its `prev` is not a SHA-256"
        if event is not None:
            self.folder.see_run(event, at_ms)
            self.folder.fold(lean(event, line), state.id, n, at_ms)
        state.note(n)
        segment = self._segment(state, known.run_id, n, prev)
        self._append(segment, line, source, at_ms)
        if not is_chained_here and event is not None:
            self._current, self._version = segment, event.v
        return None

    def _segment(self, state: ShimState, run_id: str, n: int, prev: bytes) -> Segment:
        segment = state.segment
        if segment is None or segment.next_n != n or segment.run_id != run_id:
            segment = state.segment = Segment(state, run_id, n, prev, n)
            self.segments.append(segment)
            self.touched[state.id] = state
        return segment

    def _is_first_time(self, line: bytes) -> bool:
        digest = sha256(line).digest()
        if digest in self.digests or self._lookups.has_unnumbered(digest):
            return False
        self.digests.add(digest)
        return True


def _is_digest(text: bytes) -> bool:
    return len(text) == 64 and not text.translate(None, b"0123456789abcdef")
