"""Stored events: reads them back in chain order or in the order of ingest; packs and unpacks them.

A segment holds consecutive events of one shim. It is stored raw, and packed later. Events resemble
each other, and they resemble `_DICTIONARY`, with which packing starts.
"""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import apsw
import msgspec
from msgspec import Struct

from subluminal.journal.chain import link
from subluminal.timestamps import parse_rfc3339

RAW, DEFLATED = 0, 1
"""Values of `segments.codec`."""

_COLUMNS = "id, shim, first_n, last_n, first_pos, prev, head, last_ms, codec, lines"


class StoredSegment(NamedTuple):
    """A row of `segments`."""

    id: int
    shim: int
    first_n: int
    last_n: int
    first_pos: int
    prev: bytes
    head: bytes
    last_ms: int
    """time of its last event, in milliseconds"""
    codec: int
    packed: bytes | None

    @property
    def is_dropped(self) -> bool:
        """Whether retention removed the events. Their hashes stay."""
        return self.packed is None

    def lines(self) -> list[bytes]:
        """The events in their chained form. Raises zlib.error if the stored bytes are damaged."""
        if self.packed is None:
            return []
        raw = self.packed if self.codec == RAW else unpack(self.packed)
        return raw.split(b"\n")

    def has_its_hashes(self) -> bool:
        """Whether its events are whole and have the hashes of its row. Dropped ones have none."""
        prev = self.prev.hex().encode()
        try:
            for line in self.lines():
                prev = link(prev, line)
        except zlib.error:
            return False
        return self.is_dropped or prev == self.head.hex().encode()


def of_shim(connection: apsw.Connection, shim: int) -> Iterator[StoredSegment]:
    """The segments of a shim in the order of its chain."""
    sql = f"SELECT {_COLUMNS} FROM segments WHERE shim = ? ORDER BY first_n"
    for row in connection.execute(sql, (shim,)):
        yield StoredSegment(*row)


def of_shim_as_ingested(connection: apsw.Connection, shim: int) -> Iterator[StoredSegment]:
    """The segments of a shim in the order of ingest. Keeps one in memory at a time."""
    sql = "SELECT id FROM segments WHERE shim = ? ORDER BY first_pos"
    for (number,) in list(connection.execute(sql, (shim,))):
        yield segment_by_id(connection, number)


def segment_by_id(connection: apsw.Connection, number: int) -> StoredSegment:
    """The segment with this id, which must exist."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM segments WHERE id = ?", (number,))
    return StoredSegment(*next(rows))


def after(connection: apsw.Connection, position: int) -> Iterator[StoredSegment]:
    """Segments in the order of ingest, from the segment that holds the event after `position`."""
    first = connection.execute(
        "SELECT first_pos FROM segments WHERE first_pos <= ? ORDER BY first_pos DESC LIMIT 1",
        (position + 1,),
    ).fetchone()
    sql = f"SELECT {_COLUMNS} FROM segments WHERE first_pos >= ? ORDER BY first_pos"
    for row in connection.execute(sql, (first[0] if first else 0,)):
        yield StoredSegment(*row)


def runs_with_drops(connection: apsw.Connection) -> set[str]:
    """The runs of which some events were dropped."""
    sql = (
        "SELECT DISTINCT run_id FROM shims "
        "WHERE id IN (SELECT shim FROM segments WHERE lines IS NULL)"
    )
    return {str(run_id) for (run_id,) in connection.execute(sql)}


Gap = tuple[int, int, int]
"""row id of a shim, and the first and last number that are missing"""


def true_gaps(connection: apsw.Connection) -> set[Gap]:
    """The parts of the stored gaps that are missing indeed.

    Events that are missing without a gap are not among them: they were in the ledger.
    """
    missing = _missing(connection)
    found = set()
    for shim, first, last in connection.execute("SELECT shim, first_n, last_n FROM gaps"):
        for start, end in missing.get(shim, ()):
            if start <= last and first <= end:
                found.add((shim, max(first, start), min(last, end)))
    return found


def _missing(connection: apsw.Connection) -> dict[int, list[tuple[int, int]]]:
    """The numbers up to the last one of each shim that no segment holds."""
    found: dict[int, list[tuple[int, int]]] = {}
    last: dict[int, int] = {}
    spans = connection.execute("SELECT shim, first_n, last_n FROM segments ORDER BY shim, first_n")
    for shim, first_n, last_n in spans:
        after = last.get(shim, 0) + 1
        if first_n > after:
            found.setdefault(shim, []).append((after, first_n - 1))
        last[shim] = max(last_n, after - 1)
    for shim, last_n in connection.execute("SELECT id, last_n FROM shims"):
        if last_n > last.get(shim, 0):
            found.setdefault(shim, []).append((last.get(shim, 0) + 1, last_n))
    return found


class _Dated(Struct, frozen=True):
    ts: str


_decode_dated = msgspec.json.Decoder(_Dated).decode


def time_of(line: bytes) -> int:
    """The time of a stored event of any type, in milliseconds. Raises ValueError."""
    return parse_rfc3339(_decode_dated(line).ts)


class EventReader:
    """Reads single stored events. Keeps the last segment that it read of each shim."""

    MAX_KEPT = 64

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._kept: dict[int, tuple[StoredSegment, list[bytes]]] = {}

    def line(self, shim: int, n: int) -> bytes | None:
        """An event in its chained form; None if it was dropped or never arrived."""
        kept = self._kept.get(shim)
        if kept is None or not kept[0].first_n <= n <= kept[0].last_n:
            segment = self._find(shim, n)
            if segment is None:
                return None
            if len(self._kept) >= self.MAX_KEPT:
                self._kept.clear()
            try:
                kept = self._kept[shim] = (segment, segment.lines())
            except zlib.error:
                # `verify` reports damage.
                return None
        lines, index = kept[1], n - kept[0].first_n
        return lines[index] if index < len(lines) else None

    def _find(self, shim: int, n: int) -> StoredSegment | None:
        sql = (
            f"SELECT {_COLUMNS} FROM segments WHERE shim = ? AND first_n <= ? "
            "ORDER BY first_n DESC LIMIT 1"
        )
        for row in self._connection.execute(sql, (shim, n)):
            segment = StoredSegment(*row)
            if segment.last_n >= n and not segment.is_dropped:
                return segment
        return None


# INVARIANT: the dictionary is part of the file format. A ledger cannot be read without it.
_DICTIONARY = (
    b'{"type":"run_start","v":"0.1.0","ts":"2026-11-15T00:00:00.000Z","run":{"started_at":"'
    b'"mode":"guardrails","calls_total":,"calls_allowed":,"calls_blocked":,"calls_throttled":'
    b'{"type":"shim_health","v":"0.1.0","health":{"state":"spawned","server_name":","pid":'
    b'"error":{"class":"upstream_error","message":"policy_block","code":,"retryable":false},'
    b'"hint":{"hint_text":"","suggested_args":null,"retry_advice":null,"hint_kind":"SAFETY"}'
    b'{"type":"tool_call_end","v":"0.1.0","ts":"2026-11-15T00:00:00.000Z","run_id":"'
    b'"},"status":"ERROR","status":"OK","latency_ms":1,"bytes_out":1,"preview":{"truncated":false,'
    b'"hash":"{"type":"tool_call_start","v":"0.1.0","ts":"2026-11-15T00:00:00.000Z","run_id":"'
    b'","agent_id":"","client":"claude","env":"dev","source":{"host_id":"","proc_id":"","shim_id":"'
    b'","n":1,"prev":""},"principal":"","workload":{"user":"root","repo_path":"/home/","repo":"'
    b'","branch":"main"},"call":{"call_id":"","server_name":"","tool_name":"","args_hash":"'
    b'","transport":"mcp_stdio","bytes_in":100,"seq":1,"preview":{"truncated":false,"hash":""}}}\n'
    b'{"type":"tool_call_decision","v":"0.1.0","decision":{"action":"BLOCK","action":"ALLOW",'
    b'"rule_id":null,"severity":"info","explain":{"summary":"no rule matched","reason_code":"'
    b'DEFAULT_ALLOW"},"policy":{"policy_id":"none","policy_version":"","policy_hash":""}}}\n'
)


def pack(raw: bytes) -> bytes:
    """Deflates the lines of a segment."""
    deflater = zlib.compressobj(level=6, zdict=_DICTIONARY)
    return deflater.compress(raw) + deflater.flush()


def unpack(packed: bytes) -> bytes:
    """Inflates the lines of a segment. Raises zlib.error if they are damaged."""
    inflater = zlib.decompressobj(zdict=_DICTIONARY)
    return inflater.decompress(packed) + inflater.flush()
