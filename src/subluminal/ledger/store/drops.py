"""Signed records of what retention dropped, one for each dropped segment (provable-ledger).

A record states which events are gone, how old the newest of them was, when they were dropped, and
the settings that made them due. The home's key signs it, so `verify` can tell retention from
somebody who erased events. Records of neighbouring segments are merged with them.
"""

from enum import StrEnum

import apsw
import msgspec
from msgspec import Struct

from subluminal.ledger.store.segments import StoredSegment
from subluminal.trust.home_key import HomeKey

DAY_MS = 86_400_000
LOW_WATER = 0.9
"""A ledger that is too large is shrunk to this share of its bound, not just below it."""

PURPOSE = "subluminal-ledger-drop-v1"

_PUT = "INSERT OR REPLACE INTO drops VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_GET = (
    "SELECT reason, newest_at, dropped_at, keep_days, max_bytes, used_bytes, signature "
    "FROM drops WHERE segment = ?"
)


class DropReason(StrEnum):
    """Why events were dropped."""

    AGE = "age"
    """they were older than `ledger.keep_days`"""
    SIZE = "size"
    """the ledger was larger than `ledger.max_bytes`"""
    UNKNOWN = "unknown"
    """an early version dropped them, which kept no record"""


class Drop(Struct, frozen=True):
    """A row of `drops`, without its segment and its signature. Times are in milliseconds."""

    reason: str
    newest_at: int
    dropped_at: int
    keep_days: int
    max_bytes: int
    used_bytes: int

    @property
    def was_due(self) -> bool:
        """Whether the events had to go, by the settings and the clock of that time."""
        match self.reason:
            case DropReason.AGE:
                return self.newest_at < self.dropped_at - self.keep_days * DAY_MS
            case DropReason.SIZE:
                return self.used_bytes > self.max_bytes * LOW_WATER
            case _:
                return self.reason == DropReason.UNKNOWN

    def with_later(self, later: "Drop") -> "Drop | None":
        """The record of both drops; None if they were due for different reasons."""
        is_alike = (self.reason, self.keep_days, self.max_bytes) == (
            later.reason,
            later.keep_days,
            later.max_bytes,
        )
        if not is_alike or later.dropped_at < self.dropped_at:
            return None
        newest_at = max(self.newest_at, later.newest_at)
        return msgspec.structs.replace(later, newest_at=newest_at)


class _Statement(Struct, frozen=True):
    """What is signed."""

    shim_id: str
    first_n: int
    last_n: int
    prev: str
    head: str
    drop: Drop


def statement(shim_id: str, segment: StoredSegment, drop: Drop) -> bytes:
    """The text that the home's key signs for a dropped segment."""
    span = (segment.first_n, segment.last_n, segment.prev.hex(), segment.head.hex())
    return msgspec.json.encode(_Statement(shim_id, *span, drop))


def early_statement(
    shim_id: str, first_n: int, last_n: int, prev: bytes, head: bytes, last_ms: int
) -> bytes:
    """The same for a segment that an early version dropped."""
    drop = Drop(DropReason.UNKNOWN, last_ms, 0, 0, 0, 0)
    return msgspec.json.encode(_Statement(shim_id, first_n, last_n, prev.hex(), head.hex(), drop))


def put_drop(
    connection: apsw.Connection, shim_id: str, segment: StoredSegment, drop: Drop, key: HomeKey
) -> None:
    """Signs and writes the record of a dropped segment."""
    signature = key.sign(PURPOSE, statement(shim_id, segment, drop))
    connection.execute(_PUT, (segment.id, *msgspec.structs.astuple(drop), signature))


def get_drop(connection: apsw.Connection, segment_id: int) -> tuple[Drop, bytes] | None:
    """The record of a dropped segment and its signature; None if there is no record."""
    row = connection.execute(_GET, (segment_id,)).fetchone()
    return None if row is None else (Drop(*row[:-1]), bytes(row[-1] or b""))
