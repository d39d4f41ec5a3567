"""The state of ledgerd, for `sub ledgerd status` and for Prometheus."""

import os
from collections.abc import Callable

import apsw
from msgspec import Struct

from subluminal.ledger.store.counting import (
    NEWER_EVENTS,
    PREVIEWS_DROPPED,
    QUARANTINED,
    QUARANTINED_BYTES,
    read_counter,
)
from subluminal.ledger.upkeep.deferred import calls_not_indexed

_DAMAGE = (
    "SELECT origin, offset, length, lines, reason, lower(hex(digest)) FROM quarantine "
    "ORDER BY id DESC LIMIT 10"
)


class Progress(Struct):
    """What the writer reports of itself. One thread writes it, others read it."""

    events_total: int = 0
    duplicates: int = 0
    backlog_bytes: int = 0
    unfinished_bytes: int = 0
    events_per_s: float = 0.0
    active_s: float = 0.0
    """when something was last stored, on the monotonic clock in seconds"""
    events_lost: int = 0
    """events that shims wrote, and that are neither in the ledger nor in a journal"""
    problem: str | None = None
    """why the ledger cannot be written at the moment"""


class DamageRecord(Struct, frozen=True):
    """A stretch of a journal that holds no events."""

    origin: str
    """journal file below the journal directory, or the connection that the lines came from"""
    offset: int
    length: int | None
    """size in bytes; None if an earlier version noted it"""
    lines: int
    reason: str
    """what is wrong with the first line"""
    digest: str | None
    """SHA-256 of the bytes, in hex"""


class StatusRecord(Struct, frozen=True, kw_only=True):
    """`sub ledgerd status --json`."""

    running: bool
    pid: int
    version: str
    uptime_s: float
    backlog_bytes: int
    unfinished_bytes: int
    """size of the lines in journals that have no end yet, which the backlog does not count"""
    events_total: int
    events_per_s: float
    duplicates: int
    events_lost: int
    calls_total: int
    runs_total: int
    quarantined: int
    """lines that were not events"""
    quarantined_bytes: int
    newer_events: int
    """events of a newer MAJOR version: they are stored, but not shown as calls and runs"""
    damage: list[DamageRecord]
    """the newest stretches that were not events; the ledger's table `quarantine` has more"""
    previews_dropped: int
    search_behind: int
    ledger_bytes: int
    sqlite: str
    http: str | None
    problem: str | None


class Stored(Struct, frozen=True):
    """Counts that are read from the ledger."""

    calls: int
    runs: int
    quarantined: int
    quarantined_bytes: int
    newer_events: int
    previews_dropped: int
    search_behind: int
    damage: list[DamageRecord]
    by_result: list[tuple[str, str, int]]
    """decision, status, number of calls"""


def read_stored(connection: apsw.Connection) -> Stored:
    """Reads the counts. Reads small tables only, so it is quick on any ledger."""
    results = list(
        connection.execute("SELECT decision, status, sum(calls) FROM totals GROUP BY 1, 2")
    )
    runs = next(connection.execute("SELECT count(*) FROM runs"))[0]
    return Stored(
        sum(calls for _, _, calls in results),
        runs,
        read_counter(connection, QUARANTINED),
        read_counter(connection, QUARANTINED_BYTES),
        read_counter(connection, NEWER_EVENTS),
        read_counter(connection, PREVIEWS_DROPPED),
        calls_not_indexed(connection),
        [DamageRecord(*row) for row in connection.execute(_DAMAGE)],
        results,
    )


def ledger_bytes(path: str) -> int:
    """The size of the ledger on disk in bytes, with its WAL."""
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(path + suffix).st_size
        except FileNotFoundError:
            continue
    return total


class Reporter:
    """Reports what the writer, the ledger and the process know."""

    def __init__(
        self, progress: Progress, path: str, version: str, uptime_s: Callable[[], float]
    ) -> None:
        self._progress = progress
        self._path = path
        self._version = version
        self._uptime_s = uptime_s
        self.http: str | None = None

    def status(self, stored: Stored) -> StatusRecord:
        progress = self._progress
        return StatusRecord(
            running=True,
            pid=os.getpid(),
            version=self._version,
            uptime_s=round(self._uptime_s(), 3),
            backlog_bytes=progress.backlog_bytes,
            unfinished_bytes=progress.unfinished_bytes,
            events_total=progress.events_total,
            events_per_s=progress.events_per_s,
            duplicates=progress.duplicates,
            events_lost=progress.events_lost,
            calls_total=stored.calls,
            runs_total=stored.runs,
            quarantined=stored.quarantined,
            quarantined_bytes=stored.quarantined_bytes,
            newer_events=stored.newer_events,
            damage=stored.damage,
            previews_dropped=stored.previews_dropped,
            search_behind=stored.search_behind,
            ledger_bytes=ledger_bytes(self._path),
            sqlite=apsw.sqlite_lib_version(),
            http=self.http,
            problem=progress.problem,
        )

    def metrics(self, stored: Stored) -> str:
        """The status in the text format of Prometheus."""
        status = self.status(stored)
        lines = []
        for name, kind, value, doc in (
            ("events_total", "counter", status.events_total, "Events in the ledger."),
            ("duplicates_total", "counter", status.duplicates, "Events that arrived again."),
            ("lost_events", "gauge", status.events_lost, "Events whose journal is gone."),
            ("quarantined_total", "counter", status.quarantined, "Lines that were not events."),
            ("quarantined_bytes_total", "counter", status.quarantined_bytes, "Their size."),
            ("newer_events_total", "counter", status.newer_events, "Events we cannot read."),
            ("previews_dropped_total", "counter", status.previews_dropped, "Previews dropped."),
            ("runs", "gauge", status.runs_total, "Runs in the ledger."),
            ("backlog_bytes", "gauge", status.backlog_bytes, "Journals not read yet."),
            ("unfinished_bytes", "gauge", status.unfinished_bytes, "Lines without an end."),
            ("search_behind", "gauge", status.search_behind, "Calls not searchable yet."),
            ("ledger_bytes", "gauge", status.ledger_bytes, "Size of the ledger on disk."),
            ("up", "gauge", int(status.problem is None), "Whether the ledger can be written."),
        ):
            lines += _described(name, kind, doc)
            lines.append(f"subluminal_ledger_{name} {value}")
        lines += _described("calls", "gauge", "Calls in the ledger.")
        for decision, status_word, calls in stored.by_result:
            labels = f'decision="{decision}",status="{status_word}"'
            lines.append(f"subluminal_ledger_calls{{{labels}}} {calls}")
        return "\n".join(lines) + "\n"


def _described(name: str, kind: str, doc: str) -> list[str]:
    full = f"subluminal_ledger_{name}"
    return [f"# HELP {full} {doc}", f"# TYPE {full} {kind}"]
