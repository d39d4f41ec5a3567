"""Intents with the status of their executions, for `sub query intents` and `sub show`.

The ledger knows what packs decided; the execution ledger knows what was executed. An execution
belongs to the call that claimed it: the first allowed call of its run, from the claim on, with this
intent and the decision EXECUTE. Retries are refused, so they have no status. An execution whose
call never reached the ledger is a row of its own, with what the execution ledger knows of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from subluminal.adapters.in_process.executions import KeptExecutions, existing_executions
from subluminal.config.loading import load_settings
from subluminal.config.places import Places
from subluminal.contracts.vocabulary import Action
from subluminal.errors import SubluminalError
from subluminal.kernel.decisions import DecisionKind
from subluminal.kernel.executions import ExecutionStatus, LedgerEntry
from subluminal.ledger.client.finding import newest_rows
from subluminal.ledger.client.ledger import Found, Ledger, Page, Row
from subluminal.ledger.filter.fields import INTENT_FIELDS
from subluminal.ledger.filter.language import Filter, Term, format_filter, terms_of
from subluminal.ledger.filter.matching import matches
from subluminal.timestamps import parse_rfc3339

COLUMNS = (
    *("ts", "run_id", "call_id", "pack", "intent_kind", "intent_hash", "nonce", "principal"),
    *("taint", "decision_kind", "refusal_code", "status"),
)
"""What `sub query intents` tells of an intent."""

_AT_ONCE = 48
"""Ids in one question to the ledger: a filter has a greatest length."""
_ALL = 2**31 - 1
_PAGE = 1_000
_SEARCHED = 256
"""Fewest intents to ask for at once where most of them may have another status."""
_T = TypeVar("_T")
_Statuses = frozenset[ExecutionStatus]


@contextmanager
def open_intents(places: Places, ledger: Ledger) -> Iterator["Intents"]:
    """Opens the execution ledger of the settings beside the ledger. Raises SubluminalError."""
    setting = load_settings(places.settings).kernel.executions
    kept = existing_executions(setting, places)
    try:
        yield Intents(ledger, kept, is_off=setting == "off")
    finally:
        if kept is not None:
            kept.close()


class Intents:
    """The intents of a home. Every method may raise ExecutionsUnavailable."""

    def __init__(self, ledger: Ledger, kept: KeptExecutions | None, *, is_off: bool) -> None:
        self._ledger = ledger
        self._kept = kept
        self._is_off = is_off

    def newest(self, wanted: Filter, limit: int, *, newest_first: bool) -> list[Row]:
        """Returns the newest `limit` intents that pass a filter, in the order of time."""
        statuses = self._statuses(wanted)
        rest = tuple(term for term in wanted if term.field != "status")
        if statuses is None:
            rows = self._recorded(rest, limit, None)
        elif ExecutionStatus.DONE in statuses:
            # There may be very many of them, so they are looked for page by page.
            rows = self._recorded(rest, limit, statuses) + self._unfinished(rest, statuses)[1]
        else:
            known, lost = self._unfinished(rest, statuses)
            rows = known + lost
        rows = sorted(rows, key=lambda row: _ms(row["ts"] or ""))[-limit:]
        told = [{name: row[name] for name in COLUMNS} for row in rows]
        return told[::-1] if newest_first else told

    def status_of(self, call: Row) -> str | None:
        """Returns the status of the execution that a call claimed; None if it claimed none."""
        kernel = call["kernel"]
        if kernel is None or call["decision"] != Action.ALLOW:
            return None
        (row,) = self._joined([{**kernel, "call_id": call["call_id"]}])
        status: str | None = row["status"]
        return status

    def _statuses(self, wanted: Filter) -> _Statuses | None:
        """Returns the statuses that a filter asks for; None if it does not ask."""
        terms = terms_of(wanted, "status")
        if not terms:
            return None
        if self._is_off:
            raise SubluminalError(
                "`[kernel] executions` is `off`, so no execution has a status",
                hint="leave `status` out, or set `[kernel] executions` in config.toml",
            )
        return frozenset(
            status
            for status in ExecutionStatus
            if all((status in term.values) != term.negated for term in terms)
        )

    def _recorded(self, rest: Filter, limit: int, statuses: _Statuses | None) -> list[Row]:
        """Returns the newest intents of the ledger, with any of these statuses."""

        def ask(where: str, page: Page) -> Found:
            if statuses is not None:
                page = page._replace(limit=max(page.limit, _SEARCHED))
            found = self._ledger.intents(where, page)
            return Found(self._joined(found.rows), found.next)

        def keep(row: Row) -> bool:
            return statuses is None or row["status"] in statuses

        return newest_rows(ask, format_filter(rest), limit, newest_first=False, keep=keep)

    def _unfinished(self, rest: Filter, statuses: _Statuses) -> tuple[list[Row], list[Row]]:
        """Returns executions that are not done: those that the ledger has, and the others."""
        if self._kept is None:
            return [], []
        entries = [
            entry
            for status in sorted(statuses - {ExecutionStatus.DONE})
            for entry in self._kept.entries(status, _ALL)
        ]
        known, lost = [], []
        for entry, row in self._claims(entries):
            if row is not None:
                known.append({**row, "status": entry.status.value})
            elif matches(rest, _facts(entry), INTENT_FIELDS):
                lost.append(_of_entry(entry))
        return self._passing(known, rest) if rest else known, lost

    def _passing(self, rows: list[Row], rest: Filter) -> list[Row]:
        """Returns the rows that pass a filter, which the ledger evaluates."""
        passing: set[Any] = set()
        for some in _parts(rows):
            ids = Term("call", ":", tuple(row["call_id"] for row in some))
            passing |= {row["call_id"] for row in self._every((*rest, ids))}
        return [row for row in rows if row["call_id"] in passing]

    def _joined(self, rows: list[Row]) -> list[Row]:
        """Returns rows of the ledger with the status of the execution that each claimed."""
        hashes = {
            row["intent_hash"]: None for row in rows if row["decision_kind"] == DecisionKind.EXECUTE
        }
        kept = self._kept
        found = [] if kept is None else [kept.check(each) for each in hashes]
        claims = self._claims([entry for entry in found if entry is not None])
        status = {row["call_id"]: entry.status.value for entry, row in claims if row is not None}
        return [{**row, "status": status.get(row["call_id"])} for row in rows]

    def _claims(self, entries: list[LedgerEntry]) -> Iterator[tuple[LedgerEntry, Row | None]]:
        """Yields every execution, and the row of the call that claimed it."""
        for some in _parts(entries):
            asked = (
                Term("kernel", ":", (DecisionKind.EXECUTE.value,)),
                Term("decision", ":", (Action.ALLOW.value,)),
                Term("intent_hash", ":", tuple(entry.intent_hash for entry in some)),
            )
            rows = [row for row in self._every(asked) if row["divergence"] is None]
            for entry in some:
                yield entry, _claimer(entry, rows)

    def _every(self, asked: Filter) -> Iterator[Row]:
        """Yields all intents of the ledger that pass a filter, oldest first."""
        page = Page(_PAGE, newest_first=False)
        while True:
            found = self._ledger.intents(format_filter(asked), page)
            yield from found.rows
            if found.next is None:
                return
            page = page._replace(cursor=found.next)


def _claimer(entry: LedgerEntry, rows: Iterable[Row]) -> Row | None:
    """Returns the row of the call that claimed an execution; None if the ledger does not have it.

    Calls before the claim are of executions that were released.
    """
    at = _ms(entry.at)
    mine = (
        row
        for row in rows
        if (row["intent_hash"], row["run_id"]) == (entry.intent_hash, entry.session_id)
    )
    return next((row for row in mine if parse_rfc3339(row["ts"]) >= at), None)


def _facts(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "at": _ms(entry.at),
        "run": entry.session_id,
        "intent": entry.kind,
        "intent_hash": entry.intent_hash,
    }


def _of_entry(entry: LedgerEntry) -> Row:
    known = {
        "ts": entry.at if _ms(entry.at) else None,
        "run_id": entry.session_id,
        "intent_kind": entry.kind,
        "intent_hash": entry.intent_hash,
        "status": entry.status.value,
    }
    return dict.fromkeys(COLUMNS) | known


def _ms(text: str) -> int:
    """Returns a time in milliseconds; 0 for one that the writer of an execution made up."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return 0


def _parts(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yields a sequence in parts that one question can name."""
    for first in range(0, len(items), _AT_ONCE):
        yield items[first : first + _AT_ONCE]
