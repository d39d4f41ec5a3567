"""Reads the ledger's file itself, while no daemon does. The same rows as over the socket."""

import os
from typing import Any

import apsw
import msgspec

from subluminal.clock import now
from subluminal.config.places import Places
from subluminal.journal.reading import JournalFile
from subluminal.ledger.client.ledger import Found, Page, Row
from subluminal.ledger.filter.fields import CALL_FIELDS, RUN_FIELDS, Field
from subluminal.ledger.filter.language import Filter, parse_filter
from subluminal.ledger.query import approvals, calls, hints, runs, scores, tools
from subluminal.ledger.query.asking import call_filter
from subluminal.ledger.query.filters import Paging
from subluminal.ledger.query.runs import RunFilter
from subluminal.ledger.store.database import LedgerOutdated, open_reader
from subluminal.ledger.store.hint_outcomes import Outcome


class DirectLedger:
    """A read-only connection."""

    def __init__(self, places: Places) -> None:
        self._connection = open_reader(places.ledger)

    def calls(self, where: str, page: Page) -> Found:
        wanted = call_filter(_terms(where, CALL_FIELDS))
        found = calls.find_calls(self._connection, wanted, _paging(page))
        return Found(_plain(found.calls), found.next)

    def runs(self, where: str, page: Page) -> Found:
        wanted = RunFilter(terms=_terms(where, RUN_FIELDS))
        found = scores.find_scores(self._connection, wanted, _paging(page))
        rows = [{**score.pop("run"), **score} for score in _plain(found.runs)]
        return Found(rows, found.next)

    def hints(self, where: str, page: Page, outcome: str | None = None) -> Found:
        terms = _terms(where, CALL_FIELDS)
        wanted = None if outcome is None else Outcome(outcome)
        found = hints.find_hints(self._connection, None, _paging(page), terms, wanted)
        return Found(_plain(found.hints), found.next)

    def approvals(self, where: str, page: Page) -> Found:
        terms = _terms(where, CALL_FIELDS)
        found = approvals.find_approvals(self._connection, _paging(page), now().wall_ms, terms)
        return Found(_plain(found.approvals), found.next)

    def recovery(self, by: str, since_ms: int | None, until_ms: int | None) -> list[Row]:
        return _plain(hints.count_recovery(self._connection, hints.By(by), since_ms, until_ms))

    def tools(self) -> list[Row]:
        return _plain(tools.list_tools(self._connection))

    def call(self, call_id: str) -> Row | None:
        found = calls.show_call(self._connection, call_id)
        return None if found is None else msgspec.to_builtins(found)

    def run(self, run_id: str) -> Row | None:
        found = runs.show_run(self._connection, run_id)
        return None if found is None else msgspec.to_builtins(found)


def is_current(places: Places, journals: list[JournalFile]) -> bool:
    """Whether the ledger is of this version, with everything in it that is journalled."""
    try:
        return not _unread_bytes(places, journals)
    except LedgerOutdated:
        return False


def _unread_bytes(places: Places, journals: list[JournalFile]) -> int:
    connection = open_reader(places.ledger)
    try:
        offsets = dict(connection.execute("SELECT path, offset FROM journal_offsets"))
    except apsw.Error:
        offsets = {}
    finally:
        connection.close()
    unread = 0
    for file in journals:
        name = os.path.relpath(file.path, places.journal)
        try:
            unread += max(0, os.stat(file.path).st_size - int(offsets.get(name, 0)))
        except FileNotFoundError:
            continue
    return unread


def _terms(where: str, fields: dict[str, Field]) -> Filter:
    return parse_filter(where, now_ms=now().wall_ms, fields=fields)


def _paging(page: Page) -> Paging:
    return Paging(limit=page.limit, cursor=page.cursor, newest_first=page.newest_first)


def _plain(values: Any) -> list[Row]:
    rows: list[Row] = msgspec.to_builtins(values)
    return rows
