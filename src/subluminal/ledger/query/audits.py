"""Reads audit records of the kernel back from the chained events, for `sub pack replay`.

One segment of one shim is in memory at a time, so memory does not grow with the ledger. Records are
in the order of runs, then of shims, then of their chain. Dropped events are left out.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apsw
import msgspec
from msgspec import Raw, Struct

from subluminal.contracts.codec import NO_EVENT
from subluminal.contracts.vocabulary import EventType
from subluminal.ledger.query.recorded_runs import run_ids
from subluminal.ledger.store.segments import StoredSegment, of_shim
from subluminal.timestamps import parse_rfc3339

_MARK = b'{"type":"%b"' % EventType.AUDIT_RECORD.encode()


class AuditLine(NamedTuple):
    """An audit record, and the call that it is about."""

    call_id: str
    run_id: str
    record: bytes
    """the record as JSON, as the agent's process wrote it; secrets in it are masked"""


class _Call(Struct, frozen=True):
    call_id: str


class _Audited(Struct, frozen=True):
    ts: str
    run_id: str
    call: _Call
    audit: Raw


_decode = msgspec.json.Decoder(_Audited).decode


def audit_records(
    connection: apsw.Connection, runs: Iterable[str] | None = None, since_ms: int | None = None
) -> Iterator[AuditLine]:
    """The audit records of these runs, or of all runs; of those, the records since then."""
    for run_id in run_ids(connection, since_ms) if runs is None else runs:
        shims = connection.execute("SELECT id FROM shims WHERE run_id = ? ORDER BY id", (run_id,))
        for (shim,) in list(shims):
            for segment in of_shim(connection, shim):
                yield from _audits(segment, since_ms or 0)


def _audits(segment: StoredSegment, since_ms: int) -> Iterator[AuditLine]:
    try:
        lines = segment.lines()
    except zlib.error:
        return  # `sub ledger verify` reports the damage
    for line in lines:
        if not line.startswith(_MARK):
            continue
        try:
            event = _decode(line)
            is_wanted = parse_rfc3339(event.ts) >= since_ms
        except NO_EVENT:
            continue  # a newer version wrote it
        if is_wanted:
            yield AuditLine(event.call.call_id, event.run_id, bytes(event.audit))
