"""Proves the chains of events.

Each shim chains its events: event n+1 carries the hash of the chain up to event n. `ChainProof`
computes every hash again from the stored events, and compares: with the next event, with the head
that the ledger stores for each segment and each shim, and with the heads that checkpoints signed. A
segment that retention dropped has only its hashes left: they join the segments around it.
"""

import zlib
from collections.abc import Iterable

import apsw
from msgspec import Struct

from subluminal.journal.chain import link, seed
from subluminal.journal.verifying import ChainCheck
from subluminal.ledger.proof.drops import DropProof
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.proof.seals import HomeSeal, SealProof
from subluminal.ledger.store.segments import StoredSegment, of_shim, of_shim_as_ingested, time_of
from subluminal.ledger.upkeep.checkpoints import Head


class StoredShim(Struct):
    """A row of `shims`, with the gaps and the signed heads of its chain."""

    id: int
    shim_id: str
    run_id: str
    is_chained_here: bool
    last_n: int
    head: bytes
    anchored: bytes | None
    """the head that a checkpoint signed last, as the row says"""
    gaps: set[tuple[int, int]]
    signed: dict[int, bytes]
    """the head that a checkpoint signed, by the number of the event before it"""


def stored_shims(connection: apsw.Connection, run_id: str | None) -> list[StoredShim]:
    """The shims of a run, or all shims."""
    sql = "SELECT id, shim_id, run_id, is_chained_here, last_n, head, anchored FROM shims"
    where, arguments = (" WHERE run_id = ?", (run_id,)) if run_id else ("", ())
    found = []
    for row in connection.execute(sql + where, arguments):
        gaps = connection.execute("SELECT first_n, last_n FROM gaps WHERE shim = ?", row[:1])
        number, shim_id, of_run, here, last_n, head, anchored = row
        spans = {(first, last) for first, last in gaps}
        found.append(
            StoredShim(number, shim_id, of_run, bool(here), last_n, head, anchored, spans, {})
        )
    return found


def add_signed(shims: Iterable[StoredShim], heads: Iterable[Head], report: Report) -> None:
    """Gives each shim its signed heads. Reports shims that were signed and are gone.

    Reports also shims that pass for signed: the next checkpoint would leave them out.
    """
    by_id = {shim.shim_id: shim for shim in shims}
    for head in heads:
        shim = by_id.get(head.shim_id)
        if shim is None:
            where = f"shim `{head.shim_id}`"
            report.add("shims", where, "a checkpoint signed its events, but they are gone")
        else:
            shim.signed[head.n] = head.head
    for shim in by_id.values():
        last = shim.signed[max(shim.signed)] if shim.signed else None
        if shim.anchored not in (None, last):
            message = "`anchored` is not the head that a checkpoint signed last"
            report.add("shims", f"shim `{shim.shim_id}`", message)


class ChainProof:
    """Proves that the stored events of one shim are the ones it chained: all of them, in order."""

    def __init__(
        self,
        connection: apsw.Connection,
        shim: StoredShim,
        drops: DropProof,
        home: HomeSeal,
        report: Report,
        *,
        is_counted: bool,
    ) -> None:
        """`is_counted` says whether the state of a run of this home counts the shim's events."""
        self._connection = connection
        self._shim = shim
        self._drops = drops
        self._seals = SealProof(home, shim.run_id, shim.shim_id, report, is_counted=is_counted)
        self._report = report

    def check(self) -> None:
        """Reports the first event that is wrong, every gap, and every drop that was not due."""
        shim = self._shim
        if shim.is_chained_here:
            problem = self._check_origin() or self._check_here(
                of_shim_as_ingested(self._connection, shim.id)
            )
        else:
            problem = self._check(of_shim(self._connection, shim.id))
        if problem is not None:
            self._add(*problem)

    def _add(self, n: int, message: str) -> None:
        self._report.add("segments", f"shim `{self._shim.shim_id}` event {n}", message)

    def _check(self, segments: Iterable[StoredSegment]) -> tuple[int, str] | None:
        shim = self._shim
        check = ChainCheck(shim.shim_id)
        for segment in segments:
            if segment.first_n > check.n:
                gap = (check.n, segment.first_n - 1)
                self._add(gap[0], _missing(gap, shim))
                # The chain after a gap is proven from its own first hash on.
                check = ChainCheck(shim.shim_id, segment.first_n, segment.prev.hex().encode())
            elif check.n == 1 and segment.first_n == 1:
                check.prev = segment.prev.hex().encode()
                self._seals.begin(check.prev)
            problem = self._check_segment(segment, check)
            if problem is not None:
                return problem
        if check.n - 1 != shim.last_n:
            return check.n, _missing((check.n, shim.last_n), shim)
        if check.prev != shim.head.hex().encode():
            return shim.last_n, "the end of the chain is not the one that the ledger stores"
        if shim.signed and max(shim.signed) > shim.last_n:
            gap = (shim.last_n + 1, max(shim.signed))
            return gap[0], _missing(gap, shim)
        return None

    def _check_segment(self, segment: StoredSegment, check: ChainCheck) -> tuple[int, str] | None:
        if segment.first_n != check.n:
            return segment.first_n, f"event {segment.first_n} is stored twice"
        if segment.prev.hex().encode() != check.prev:
            return segment.first_n, "the chain does not continue from the previous event"
        if segment.is_dropped:
            self._check_drop(segment)
            check.n, check.prev = segment.last_n + 1, segment.head.hex().encode()
            return _check_signed(check, self._shim)
        return self._check_lines(segment, check)

    def _check_drop(self, segment: StoredSegment) -> None:
        problem = self._drops.check(self._shim.shim_id, segment)
        if problem is not None:
            self._add(segment.first_n, problem)

    def _check_lines(self, segment: StoredSegment, check: ChainCheck) -> tuple[int, str] | None:
        try:
            lines = segment.lines()
        except zlib.error as error:
            return segment.first_n, f"the stored events are damaged: {error}"
        for line in lines:
            damage = check.feed(line)
            if damage is not None:
                return damage.n, damage.message
            problem = _check_signed(check, self._shim)
            if problem is not None:
                return problem
            unsealed = self._seals.feed(line)
            if unsealed is not None:
                return check.n - 1, unsealed
        self._report.events += len(lines)
        if check.n != segment.last_n + 1 or check.prev != segment.head.hex().encode():
            return check.n - 1, f"event {check.n - 1} was changed, or events after it are missing"
        self._check_time(segment, lines[-1])
        return None

    def _check_origin(self) -> tuple[int, str] | None:
        """Whether the first event that is left may come from a shim that chains nothing."""
        for segment in of_shim_as_ingested(self._connection, self._shim.id):
            if not segment.is_dropped and segment.has_its_hashes():
                problem = self._seals.check_unchained(segment.lines()[0])
                return None if problem is None else (segment.first_n, problem)
        return None

    def _check_here(self, segments: Iterable[StoredSegment]) -> tuple[int, str] | None:
        """Proves a chain that the ledger made itself, in the order of ingest."""
        shim = self._shim
        prev = seed(shim.shim_id)
        heads: set[bytes] = set()
        count = 0
        for segment in segments:
            if segment.prev.hex().encode() != prev:
                return segment.first_n, "the chain does not continue from the previous event"
            if segment.is_dropped:
                self._check_drop(segment)
                prev = segment.head.hex().encode()
            try:
                lines = segment.lines()
            except zlib.error as error:
                return segment.first_n, f"the stored events are damaged: {error}"
            for line in lines:
                prev = link(prev, line)
                heads.add(prev)
                self._report.events += 1
            count += segment.last_n - segment.first_n + 1
            if segment.head.hex().encode() != prev:
                return segment.last_n, "an event was changed, or events are missing"
            heads.add(prev)
            if lines:
                self._check_time(segment, lines[-1])
        missing = sum(last - first + 1 for first, last in shim.gaps)
        if prev != shim.head.hex().encode() or count != shim.last_n - missing:
            return shim.last_n, "the end of the chain is not the one that the ledger stores"
        if any(head.hex().encode() not in heads for head in shim.signed.values()):
            return shim.last_n, "the chain is not the one that a checkpoint signed"
        return None

    def _check_time(self, segment: StoredSegment, line: bytes) -> None:
        try:
            is_right = time_of(line) == segment.last_ms
        except ValueError:
            is_right = False
        if not is_right:
            self._add(segment.last_n, "`last_ms` is not the time of the segment's last event")


def _missing(gap: tuple[int, int], shim: StoredShim) -> str:
    events = f"event {gap[0]} is" if gap[0] == gap[1] else f"events {gap[0]} to {gap[1]} are"
    is_signed = any(gap[0] <= n <= gap[1] for n in shim.signed)
    if gap in shim.gaps and not is_signed:
        return f"{events} missing: they never reached the ledger"
    return f"{events} missing: they were in the ledger"


def _check_signed(check: ChainCheck, shim: StoredShim) -> tuple[int, str] | None:
    signed = shim.signed.get(check.n - 1)
    if signed is not None and signed.hex().encode() != check.prev:
        return check.n - 1, "the chain up to this event is not the one that a checkpoint signed"
    return None
