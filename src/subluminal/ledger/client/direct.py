"""Reads the ledger's file directly, while ledgerd is not running. Needs the `daemon` extra.

Returns the same rows as ledgerd does. Also compares the journals with the offsets that ledgerd
keeps in the ledger, which tells whether the file holds everything that was recorded.
"""

import os
import time
from typing import Any, NamedTuple

import apsw
import msgspec

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.journal.reading import journal_files
from subluminal.ledger.client.ledger import Found, Page, Row
from subluminal.ledger.filter.fields import (
    CALL_FIELDS,
    RECORDED_INTENT_FIELDS,
    RUN_FIELDS,
    Field,
)
from subluminal.ledger.filter.language import Filter, parse_filter
from subluminal.ledger.ingest.hint_outcomes import HintOutcome
from subluminal.ledger.query import approvals, calls, hints, intents, runs, tools
from subluminal.ledger.query.questions import (
    IntentFilter,
    Paging,
    RecoveryBy,
    RunFilter,
    call_filter,
)
from subluminal.ledger.store.database import LedgerOutdated, open_reader

_MAX_WAIT_S = 20.0
_MAX_STANDSTILL_S = 1.0
"""Without progress for this long, the rest is an unfinished line that will never be completed."""
_POLL_S = 0.02
_READ_BYTES = 1_048_576


class DirectLedger:
    """The ledger, read over a read-only connection to its file."""

    def __init__(self, places: Places) -> None:
        self._connection = open_reader(places.ledger)

    def calls(self, where: str, page: Page) -> Found:
        wanted = call_filter(_terms(where, CALL_FIELDS))
        found = calls.find_calls(self._connection, wanted, _paging(page))
        return Found(_plain(found.calls), found.next)

    def runs(self, where: str, page: Page) -> Found:
        wanted = RunFilter(terms=_terms(where, RUN_FIELDS))
        found = runs.find_scores(self._connection, wanted, _paging(page))
        rows = [{**score.pop("run"), **score} for score in _plain(found.runs)]
        return Found(rows, found.next)

    def hints(self, where: str, page: Page, outcome: str | None = None) -> Found:
        terms = _terms(where, CALL_FIELDS)
        wanted = None if outcome is None else HintOutcome(outcome)
        found = hints.find_hints(self._connection, None, _paging(page), terms, wanted)
        return Found(_plain(found.hints), found.next)

    def intents(self, where: str, page: Page) -> Found:
        wanted = IntentFilter(terms=_terms(where, RECORDED_INTENT_FIELDS))
        found = intents.find_intents(self._connection, wanted, _paging(page))
        return Found(_plain(found.intents), found.next)

    def approvals(self, where: str, page: Page) -> Found:
        terms = _terms(where, CALL_FIELDS)
        found = approvals.find_approvals(self._connection, _paging(page), now().wall_ms, terms)
        return Found(_plain(found.approvals), found.next)

    def recovery(self, by: str, since_ms: int | None, until_ms: int | None) -> list[Row]:
        return _plain(hints.count_recovery(self._connection, RecoveryBy(by), since_ms, until_ms))

    def tools(self) -> list[Row]:
        return _plain(tools.list_tools(self._connection))

    def call(self, call_id: str) -> Row | None:
        found = calls.show_call(self._connection, call_id)
        return None if found is None else msgspec.to_builtins(found)

    def run(self, run_id: str) -> Row | None:
        found = runs.show_run(self._connection, run_id)
        return None if found is None else msgspec.to_builtins(found)


def _terms(where: str, fields: dict[str, Field]) -> Filter:
    return parse_filter(where, now_ms=now().wall_ms, fields=fields)


def _paging(page: Page) -> Paging:
    return Paging(limit=page.limit, cursor=page.cursor, newest_first=page.newest_first)


def _plain(values: Any) -> list[Row]:
    rows: list[Row] = msgspec.to_builtins(values)
    return rows


class _Tail(NamedTuple):
    """The end of a journal file that ledgerd has not read."""

    name: str
    """path of the file below the journal directory"""
    start: int
    end: int


def is_current(places: Places) -> bool:
    """Whether the ledger has this version's schema and holds everything that was journalled."""
    try:
        connection = open_reader(places.ledger)
    except LedgerOutdated:
        return False
    try:
        return not _unread_tails(connection, _journal_sizes(places))
    finally:
        connection.close()


def wait_for_journals(places: Places, connection: apsw.Connection) -> bool:
    """Waits until the ledger holds what is journalled now; False if that does not happen."""
    sizes = _journal_sizes(places)
    at = time.monotonic()
    deadline, standstill_until, unread_before = at + _MAX_WAIT_S, at + _MAX_STANDSTILL_S, -1
    while at < min(deadline, standstill_until):
        unread = sum(tail.end - tail.start for tail in _unread_tails(connection, sizes))
        if not unread:
            return True
        if unread != unread_before:
            unread_before, standstill_until = unread, at + _MAX_STANDSTILL_S
        time.sleep(_POLL_S)
        at = time.monotonic()
    return not any(_has_whole_line(places, tail) for tail in _unread_tails(connection, sizes))


def _journal_sizes(places: Places) -> dict[str, int]:
    """The size in bytes of each journal file, by its path below the journal directory."""
    sizes: dict[str, int] = {}
    for file in journal_files(places.journal):
        try:
            sizes[os.path.relpath(file.path, places.journal)] = os.stat(file.path).st_size
        except FileNotFoundError:
            continue  # removed since it was listed, so ledgerd has read it
    return sizes


def _unread_tails(connection: apsw.Connection, sizes: dict[str, int]) -> list[_Tail]:
    try:
        rows = connection.execute("SELECT path, offset FROM journal_offsets")
        offsets = {str(path): int(str(offset)) for path, offset in rows}
    except apsw.Error:
        offsets = {}  # the ledger cannot be read now: nothing counts as read
    tails = [_Tail(name, offsets.get(name, 0), size) for name, size in sizes.items()]
    return [tail for tail in tails if tail.start < tail.end]


def _has_whole_line(places: Places, tail: _Tail) -> bool:
    """Whether there is more than the unfinished line of a process that died while it wrote."""
    try:
        with open(os.path.join(places.journal, tail.name), "rb") as file:
            file.seek(tail.start)
            left = tail.end - tail.start
            while left > 0 and (data := file.read(min(left, _READ_BYTES))):
                if b"\n" in data:
                    return True
                left -= len(data)
            return False
    except FileNotFoundError:
        return False
