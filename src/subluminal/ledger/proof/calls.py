"""Proves that stored calls, previews, hints, intents and uses of grants follow from the events.

The calls of one shim are derived again, in the order of ingest. Later events may still change a
call, so each is held back until it is one of the oldest, and only then compared with its row.

A call that was handed over has its end in the journal of another shim. Its row names that event,
which must be the end of this very call; and every such end must have a row.
"""

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import apsw
import msgspec
from msgspec import UNSET, Struct, UnsetType, field, structs

from subluminal.contracts.codec import NO_EVENT
from subluminal.contracts.events import AuditRecorded, CallRound, Event, HintIssued
from subluminal.contracts.intents import KernelDecision
from subluminal.ledger.ingest import deriving, deriving_intents
from subluminal.ledger.ingest.rows import Call, HintRow, IntentRow
from subluminal.ledger.ingest.wire import (
    CallDecision,
    CallEnd,
    CallStart,
    Judged,
    RowEvent,
    decode_row_event,
)
from subluminal.ledger.proof.chains import StoredShim
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.store.segments import EventReader
from subluminal.ledger.store.tables import columns
from subluminal.timestamps import parse_rfc3339

MAX_HELD = 10_000
"""The most calls of one shim that are held back."""

_WIDTH = len(Call.__struct_fields__)
_FIND = (
    f"SELECT {', '.join('c.' + name for name in columns(Call).split(', '))}, "
    "p.call_id, p.redaction_flags, p.args_preview, p.result_preview "
    "FROM tool_calls c LEFT JOIN previews p USING (id) "
    "WHERE c.call_id = ? AND c.shim = ? AND ifnull(c.start_n, ifnull(c.decision_n, c.end_n)) = ?"
)
_FIND_HANDED = (
    "SELECT c.end_n FROM tool_calls c JOIN shims s ON s.id = c.shim "
    "WHERE c.call_id = ? AND s.shim_id = ? AND c.run_id = ? ORDER BY c.id DESC LIMIT 1"
)
_FIND_AHEAD = (
    "SELECT 1 FROM ends_ahead WHERE call_id = ? AND begun_by = ? UNION ALL "
    "SELECT 1 FROM segments g JOIN shims s ON s.id = g.shim WHERE s.shim_id = ? AND g.lines IS NULL"
)
"""An end may have no row if its start never arrived, or if retention dropped it."""
_HAS_DROPPED = "SELECT 1 FROM segments WHERE shim = ? AND lines IS NULL"
_FIND_USE = "SELECT grant_id FROM grant_uses WHERE id = ?"
_FIND_HINT = f"SELECT {columns(HintRow)} FROM hints WHERE id = ?"
_FIND_INTENT = f"SELECT {columns(IntentRow)} FROM intents WHERE id = ?"


class Derived(Struct):
    """A call as derived from its events."""

    call: Call
    hint: HintRow | None = None
    intent: IntentRow | None = None
    args: str | UnsetType = UNSET
    """the hash of the preview that the event commits to; the text itself if the event carries it"""
    result: str | UnsetType = UNSET
    args_flags: set[str] = field(default_factory=set)
    """names of what was masked in the arguments"""
    result_flags: set[str] = field(default_factory=set)
    grants: set[str] = field(default_factory=set)


class CallProof:
    """Derives the calls of one shim again, and compares them with their rows."""

    def __init__(self, connection: apsw.Connection, shim: StoredShim, report: Report) -> None:
        self._connection = connection
        self._shim = shim
        self._report = report
        self._reader = EventReader(connection)
        self._held: OrderedDict[tuple[str, int], Derived] = OrderedDict()
        self._latest: dict[str, Derived] = {}
        self.has_dropped = False
        """whether retention dropped events of this shim, and so perhaps the start of a call"""
        self._runs: set[str] = set()
        self.calls = 0
        self.previews_missing = 0
        self.hints = 0
        self.intents = 0
        self.grant_uses = 0

    def feed(self, event: RowEvent, n: int) -> None:
        """Takes the next event of the shim, in the order of ingest."""
        self._runs.add(event.run_id)
        if isinstance(event, CallStart):
            call = deriving.begin(event, 0, self._shim.id, n, parse_rfc3339(event.ts))
            derived = self._hold(call, n)
            derived.args = _committed(event.call.preview.hash, event.call.preview.args_preview)
            derived.args_flags = _flags(event.call.preview.redaction_flags)
        elif isinstance(event, CallDecision):
            derived = self._derived(event, n)
            deriving.decide(derived.call, event, n)
            if event.decision.hint is not UNSET:
                _add_hint(derived, deriving.hint_of_decision(event, derived.call))
            if event.decision.grant is not UNSET:
                derived.grants |= deriving.grants_of(event)
            _add_intent(derived, event.decision.kernel)
        elif isinstance(event, CallEnd) and event.begun_by is not UNSET:
            self._check_handed(event, event.begun_by)
        elif isinstance(event, CallEnd):
            _end(self._derived(event, n), event, n)
        elif isinstance(event, CallRound | AuditRecorded | HintIssued):
            known = self._latest.get(event.call.call_id)
            if known is not None:
                _add_more(known, event, n)

    def take_runs(self) -> set[str]:
        """The runs that events named since the last call."""
        runs, self._runs = self._runs, set()
        return runs

    def end(self) -> None:
        """Compares the calls that are still held back."""
        while self._held:
            self._compare_oldest()

    def _hold(self, call: Call, n: int) -> Derived:
        derived = Derived(call)
        self._latest[call.call_id] = derived
        self._held[call.call_id, n] = derived
        if len(self._held) > MAX_HELD:
            self._compare_oldest()
        return derived

    def _derived(self, event: CallDecision | CallEnd, n: int) -> Derived:
        derived = self._latest.get(event.call.call_id)
        if derived is None:
            call = deriving.begin_unseen(event, 0, self._shim.id, parse_rfc3339(event.ts))
            derived = self._hold(call, n)
        return derived

    def _check_handed(self, event: CallEnd, begun_by: str) -> None:
        """Reports the end of a call of another shim whose row does not have an end."""
        key = (event.call.call_id, begun_by)
        row = self._connection.execute(_FIND_HANDED, (*key, event.run_id)).fetchone()
        if row is None:
            is_known = self._connection.execute(_FIND_AHEAD, (*key, begun_by)).fetchone()
        else:
            is_known = row[0]
        if is_known is None:
            where = f"call `{event.call.call_id}` of run `{event.run_id}`"
            self._report.add("tool_calls", where, "its end, by another shim, is missing")

    def _follow(self, derived: Derived, stored: Call, result: str | None) -> None:
        """Derives the end that the row says another shim recorded."""
        call, shim, n = derived.call, stored.end_shim, stored.end_n
        if shim is None or n is None:
            return
        line = self._reader.line(shim, n)
        event = None if line is None else decode_row_event(line)
        if isinstance(event, CallEnd) and event.call.call_id == call.call_id:
            if event.begun_by == self._shim.shim_id and event.run_id == call.run_id:
                _end(derived, event, n, shim)
        elif line is None and self._connection.execute(_HAS_DROPPED, (shim,)).fetchone():
            # Nothing is left to compare with.
            for name in ("status", "latency_ms", "bytes_out", "error_class", "end_n", "end_shim"):
                setattr(call, name, getattr(stored, name))
            call.preview_truncated = stored.preview_truncated
            derived.result = UNSET if result is None else result

    def _compare_oldest(self) -> None:
        _, derived = self._held.popitem(last=False)
        call = derived.call
        if self._latest.get(call.call_id) is derived:
            del self._latest[call.call_id]
        # As in the row: a later decision or end takes the place of an earlier one.
        first_n = next(n for n in (call.start_n, call.decision_n, call.end_n) if n is not None)
        key = (call.call_id, self._shim.id, first_n)
        rows = list(self._connection.execute(_FIND, key))
        if not rows and self.has_dropped and call.start_n is None:
            return
        self.calls += 1
        where = f"call `{call.call_id}` of run `{call.run_id}`"
        if len(rows) != 1:
            message = "the row is missing" if not rows else "there are two rows"
            self._report.add("tool_calls", where, f"{message} for event {first_n}")
            return
        stored = Call(*rows[0][:_WIDTH])
        call.id = stored.id
        if call.end_n is None:
            self._follow(derived, stored, rows[0][-1])
        self._compare_columns(call, stored, where)
        self._compare_previews(derived, rows[0][_WIDTH:], where)
        self._compare_hint(derived, where)
        self._compare_intent(derived, where)
        if derived.grants:
            self._compare_grants(derived, where)

    def _compare_columns(self, call: Call, stored: Call, where: str) -> None:
        for name in call.__struct_fields__:
            derived, found = getattr(call, name), getattr(stored, name)
            if derived != found:
                message = f"`{name}` is {_say(found)}; the events say {_say(derived)}"
                self._report.add("tool_calls", where, message)
                return

    def _compare_previews(self, derived: Derived, row: tuple[Any, ...], where: str) -> None:
        call_id, flags, *texts = row
        needed: set[str] = set()
        for name, told, told_flags, text in (
            ("args_preview", derived.args, derived.args_flags, texts[0]),
            ("result_preview", derived.result, derived.result_flags, texts[1]),
        ):
            # A missing text is not damage: retention, a full disk or a scan may drop it.
            if text is None:
                self.previews_missing += told is not UNSET
            elif told != text and told != _sha256(text):
                message = f"`{name}` does not match the hash in the events"
                self._report.add("previews", where, message)
            else:
                needed |= told_flags
        if call_id not in (None, derived.call.call_id):
            self._report.add("previews", where, f"its `call_id` is `{call_id}`")
        # The flags of a text that was dropped later stay.
        if not needed <= _stored_flags(flags) <= derived.args_flags | derived.result_flags:
            self._report.add("previews", where, "`redaction_flags` are not those in the events")

    def _compare_hint(self, derived: Derived, where: str) -> None:
        row = self._connection.execute(_FIND_HINT, (derived.call.id,)).fetchone()
        if derived.hint is not None:
            self.hints += 1
            derived.hint.id = derived.call.id
        told = None if derived.hint is None else structs.astuple(derived.hint)
        if told != row:
            self._report.add("hints", where, "the hint is not the one in the events")

    def _compare_intent(self, derived: Derived, where: str) -> None:
        row = self._connection.execute(_FIND_INTENT, (derived.call.id,)).fetchone()
        if derived.intent is not None:
            self.intents += 1
            derived.intent.id = derived.call.id
        told = None if derived.intent is None else structs.astuple(derived.intent)
        if told != row:
            self._report.add("intents", where, "the intent is not the one in the events")

    def _compare_grants(self, derived: Derived, where: str) -> None:
        rows = self._connection.execute(_FIND_USE, (derived.call.id,))
        stored = {str(grant_id) for (grant_id,) in rows} & derived.grants
        self.grant_uses += len(stored)
        if stored != derived.grants:
            self._report.add("grant_uses", where, "a grant that let the call pass is missing")


def feed_lines(proof: CallProof, lines: Iterable[bytes], first_n: int) -> list[Event]:
    """Feeds stored lines. Returns the events that are not of calls, for the other proofs."""
    others: list[Event] = []
    for n, line in enumerate(lines, start=first_n):
        try:
            event = decode_row_event(line)
        except NO_EVENT:
            # The proof of the chain reports this line.
            continue
        if event is not None:
            proof.feed(event, n)
            if isinstance(event, Event):
                others.append(event)
    return others


def _end(derived: Derived, event: CallEnd, n: int, end_shim: int | None = None) -> None:
    deriving.finish(derived.call, event, n, end_shim)
    derived.result = _committed(event.preview.hash, event.preview.result_preview)
    derived.result_flags = _flags(event.preview.redaction_flags)


def _add_more(derived: Derived, event: CallRound | AuditRecorded | HintIssued, n: int) -> None:
    """Adds an event about a call that has begun."""
    if isinstance(event, HintIssued):
        _add_hint(derived, deriving.hint_of_event(event, derived.call))
    elif isinstance(event, AuditRecorded):
        if derived.intent is not None:
            said = deriving_intents.proposal_of(event.audit)
            deriving_intents.add_proposal(derived.intent, said)
    elif deriving.is_refused(event):
        deriving.decide(derived.call, event, n)
        _add_intent(derived, event.decision.kernel)


def _add_hint(derived: Derived, hint: HintRow) -> None:
    if derived.hint is None:
        derived.hint = hint
    else:
        deriving.merge_hint(derived.hint, hint)


def _add_intent(derived: Derived, kernel: Judged | KernelDecision | UnsetType) -> None:
    if kernel is UNSET:
        return
    earlier, derived.intent = derived.intent, deriving_intents.intent_row(kernel, derived.call)
    if earlier is not None:
        deriving_intents.take_place(derived.intent, earlier)


def _committed(digest: str | UnsetType, text: str | UnsetType) -> str | UnsetType:
    return digest if text is UNSET else text


def _flags(flags: list[str] | UnsetType) -> set[str]:
    return set() if flags is UNSET else set(flags)


def _stored_flags(flags: str | None) -> set[str]:
    try:
        return set() if flags is None else msgspec.json.decode(flags, type=set[str])
    except msgspec.MsgspecError:
        return {flags or ""}


def _sha256(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _say(value: object) -> str:
    return "empty" if value is None else f"`{value}`"
