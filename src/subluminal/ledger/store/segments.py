"""Reads stored events back: by their place in a shim's chain, or in the order of ingest."""

import zlib
from collections.abc import Iterator
from typing import NamedTuple

import apsw

from subluminal.ledger.upkeep.packing import RAW, unpack

_COLUMNS = "id, shim, first_n, last_n, first_pos, prev, head, codec, lines"


class StoredSegment(NamedTuple):
    """A row of `segments`."""

    id: int
    shim: int
    first_n: int
    last_n: int
    first_pos: int
    prev: bytes
    head: bytes
    codec: int
    packed: bytes | None

    @property
    def is_dropped(self) -> bool:
        """Whether retention removed the events; their hash stays."""
        return self.packed is None

    def lines(self) -> list[bytes]:
        """The events' chained forms. Raises zlib.error if someone damaged them."""
        if self.packed is None:
            return []
        raw = self.packed if self.codec == RAW else unpack(self.packed)
        return raw.split(b"\n")


def of_shim(connection: apsw.Connection, shim: int) -> Iterator[StoredSegment]:
    """A shim's segments in the order of its chain."""
    sql = f"SELECT {_COLUMNS} FROM segments WHERE shim = ? ORDER BY first_n"
    for row in connection.execute(sql, (shim,)):
        yield StoredSegment(*row)


def of_shim_as_ingested(connection: apsw.Connection, shim: int) -> Iterator[StoredSegment]:
    """A shim's segments in the order of ingest, one at a time."""
    sql = "SELECT id FROM segments WHERE shim = ? ORDER BY first_pos"
    for (number,) in list(connection.execute(sql, (shim,))):
        yield segment_by_id(connection, number)


def segment_by_id(connection: apsw.Connection, number: int) -> StoredSegment:
    """One segment that is known to be there."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM segments WHERE id = ?", (number,))
    return StoredSegment(*next(rows))


def after(connection: apsw.Connection, position: int) -> Iterator[StoredSegment]:
    """Segments in the order of ingest, from the one that holds the event after `position`."""
    first = connection.execute(
        "SELECT first_pos FROM segments WHERE first_pos <= ? ORDER BY first_pos DESC LIMIT 1",
        (position + 1,),
    ).fetchone()
    sql = f"SELECT {_COLUMNS} FROM segments WHERE first_pos >= ? ORDER BY first_pos"
    for row in connection.execute(sql, (first[0] if first else 0,)):
        yield StoredSegment(*row)


class EventReader:
    """Reads single stored events, each shim's last segment kept at hand."""

    MAX_KEPT = 64

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._kept: dict[int, tuple[StoredSegment, list[bytes]]] = {}

    def line(self, shim: int, n: int) -> bytes | None:
        """One event in its chained form; None if it was dropped or never came."""
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
                # Damage is for `verify` to tell.
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
