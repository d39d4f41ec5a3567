"""Proves the chains and the checkpoints that sign them.

Each shim chains its events: event n+1 carries the hash of the chain up to event n. `check_chain`
computes every hash again from the stored events, and compares: with the next event, with the head
that the ledger stores for each segment and each shim, and with the heads that checkpoints signed. A
segment that retention dropped has only its hashes left: they join the segments around it.
Checkpoints are chained to each other, and signed with the local key.
"""

import zlib
from collections.abc import Iterable, Iterator

import apsw
from msgspec import Struct

from subluminal.config.places import Places
from subluminal.journal.chain import link, seed
from subluminal.journal.verifying import ChainCheck
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.segments import StoredSegment, of_shim, of_shim_as_ingested
from subluminal.ledger.upkeep.checkpoints import Checkpoint, Head, digest_of, load_key, noted, sign


class StoredShim(Struct):
    """A row of `shims`, with the gaps and the signed heads of its chain."""

    id: int
    shim_id: str
    is_chained_here: bool
    last_n: int
    head: bytes
    gaps: set[tuple[int, int]]
    signed: dict[int, bytes]
    """the head that a checkpoint signed, by the number of the event before it"""


def stored_shims(connection: apsw.Connection, run_id: str | None) -> list[StoredShim]:
    """The shims of a run, or all shims."""
    sql = "SELECT id, shim_id, is_chained_here, last_n, head FROM shims"
    where, arguments = (" WHERE run_id = ?", (run_id,)) if run_id else ("", ())
    found = []
    for number, shim_id, here, last_n, head in connection.execute(sql + where, arguments):
        gaps = connection.execute("SELECT first_n, last_n FROM gaps WHERE shim = ?", (number,))
        spans = {(first, last) for first, last in gaps}
        found.append(StoredShim(number, shim_id, bool(here), last_n, head, spans, {}))
    return found


def add_signed(shims: Iterable[StoredShim], heads: Iterable[Head], report: Report) -> None:
    """Gives each shim its signed heads. Reports shims that were signed and are gone."""
    by_id = {shim.shim_id: shim for shim in shims}
    for head in heads:
        shim = by_id.get(head.shim_id)
        if shim is None:
            where = f"shim `{head.shim_id}`"
            report.add("shims", where, "a checkpoint signed its events, but they are gone")
        else:
            shim.signed[head.n] = head.head


def check_chain(connection: apsw.Connection, shim: StoredShim, report: Report) -> None:
    """Proves that the stored events of a shim are the ones it chained: all of them, in order."""
    if shim.is_chained_here:
        problem = _check_here(of_shim_as_ingested(connection, shim.id), shim, report)
    else:
        problem = _check(of_shim(connection, shim.id), shim, report)
    if problem is not None:
        n, message = problem
        report.add("segments", f"shim `{shim.shim_id}` event {n}", message)


def _check(
    segments: Iterable[StoredSegment], shim: StoredShim, report: Report
) -> tuple[int, str] | None:
    check = ChainCheck(shim.shim_id)
    for segment in segments:
        if segment.first_n > check.n:
            gap = (check.n, segment.first_n - 1)
            report.add("segments", f"shim `{shim.shim_id}` event {gap[0]}", _missing(gap, shim))
            # The chain after a gap is proven from its own first hash on.
            check = ChainCheck(shim.shim_id, segment.first_n, segment.prev.hex().encode())
        problem = _check_segment(segment, check, shim, report)
        if problem is not None:
            return problem
    if check.n - 1 != shim.last_n:
        return check.n, _missing((check.n, shim.last_n), shim)
    if check.prev != shim.head.hex().encode():
        return shim.last_n, "the end of the chain is not the one that the ledger stores"
    return None


def _missing(gap: tuple[int, int], shim: StoredShim) -> str:
    events = f"event {gap[0]} is" if gap[0] == gap[1] else f"events {gap[0]} to {gap[1]} are"
    if gap in shim.gaps:
        return f"{events} missing: they never reached the ledger"
    return f"{events} missing: they were in the ledger"


def _check_segment(
    segment: StoredSegment, check: ChainCheck, shim: StoredShim, report: Report
) -> tuple[int, str] | None:
    if segment.first_n != check.n:
        return segment.first_n, f"event {segment.first_n} is stored twice"
    if segment.prev.hex().encode() != check.prev:
        return segment.first_n, "the chain does not continue from the previous event"
    if segment.is_dropped:
        report.dropped_events += segment.last_n - segment.first_n + 1
        check.n, check.prev = segment.last_n + 1, segment.head.hex().encode()
        return _check_signed(check, shim)
    return _check_lines(segment, check, shim, report)


def _check_lines(
    segment: StoredSegment, check: ChainCheck, shim: StoredShim, report: Report
) -> tuple[int, str] | None:
    try:
        lines = segment.lines()
    except zlib.error as error:
        return segment.first_n, f"the stored events are damaged: {error}"
    for line in lines:
        damage = check.feed(line)
        problem = (damage.n, damage.message) if damage else _check_signed(check, shim)
        if problem is not None:
            return problem
    report.events += len(lines)
    if check.n != segment.last_n + 1 or check.prev != segment.head.hex().encode():
        return check.n - 1, f"event {check.n - 1} was changed, or events after it are missing"
    return None


def _check_signed(check: ChainCheck, shim: StoredShim) -> tuple[int, str] | None:
    signed = shim.signed.get(check.n - 1)
    if signed is not None and signed.hex().encode() != check.prev:
        return check.n - 1, "the chain up to this event is not the one that a checkpoint signed"
    return None


def _check_here(
    segments: Iterable[StoredSegment], shim: StoredShim, report: Report
) -> tuple[int, str] | None:
    """Proves a chain that the ledger made itself, in the order of ingest."""
    prev = seed(shim.shim_id)
    heads = set()
    count = 0
    for segment in segments:
        if segment.prev.hex().encode() != prev:
            return segment.first_n, "the chain does not continue from the previous event"
        if segment.is_dropped:
            report.dropped_events += segment.last_n - segment.first_n + 1
            prev = segment.head.hex().encode()
        for line in segment.lines():
            prev = link(prev, line)
            heads.add(prev)
            report.events += 1
        count += segment.last_n - segment.first_n + 1
        if segment.head.hex().encode() != prev:
            return segment.last_n, "an event was changed, or events are missing"
        heads.add(prev)
    missing = sum(last - first + 1 for first, last in shim.gaps)
    if prev != shim.head.hex().encode() or count != shim.last_n - missing:
        return shim.last_n, "the end of the chain is not the one that the ledger stores"
    if any(head.hex().encode() not in heads for head in shim.signed.values()):
        return shim.last_n, "the chain is not the one that a checkpoint signed"
    return None


def check_checkpoints(
    connection: apsw.Connection, places: Places, report: Report
) -> Iterator[Head]:
    """Yields the heads that checkpoints signed. Reports the first checkpoint that is wrong."""
    key = load_key(places)
    outside = noted(places)
    before, number = b"", 0
    for row in connection.execute("SELECT * FROM checkpoints ORDER BY id"):
        made = Checkpoint(*row)
        number += 1
        heads = _heads(connection, made.id)
        message = _problem(made, number, before, heads, key)
        if message is None and made.digest.hex() not in outside.get(made.id, {made.digest.hex()}):
            message = "it is not the one in the file beside the key"
        if message is not None:
            report.add("checkpoints", f"checkpoint {number}", message)
            return
        before = made.digest
        report.checkpoints += 1
        yield from heads
    if outside and max(outside) > number + 1:
        report.add(
            "checkpoints",
            f"checkpoint {number + 1}",
            "it is in the file beside the key, but gone from the ledger",
        )


def _heads(connection: apsw.Connection, number: int) -> list[Head]:
    sql = "SELECT shim_id, n, head FROM checkpoint_heads WHERE checkpoint = ?"
    return [Head(*row) for row in connection.execute(sql, (number,))]


def _problem(
    made: Checkpoint, number: int, before: bytes, heads: list[Head], key: bytes | None
) -> str | None:
    if made.id != number:
        return f"it is missing: checkpoint {made.id} is in its place"
    if key is None:
        return "the key is gone, so its signature cannot be checked"
    if digest_of(before, made.id, made.created_at, made.pos, heads) != made.digest:
        return "its contents were changed"
    if sign(key, made.digest) != made.signature:
        return "its signature was not made with this key"
    return None
