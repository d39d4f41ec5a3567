"""Finds calls: by filter, a page at a time in the order of time, or one call by its id."""

from typing import Any

import apsw
import msgspec
from msgspec import structs

from subluminal.clock import rfc3339
from subluminal.contracts.templates import encode_json
from subluminal.contracts.vocabulary import EventType
from subluminal.ledger.query import hints
from subluminal.ledger.query.events import decode_stored
from subluminal.ledger.query.outcomes import outcome_sql
from subluminal.ledger.query.paging import Key, after_cursor, order_by
from subluminal.ledger.query.planning import AccessPath, Leg, choose_path, conditions
from subluminal.ledger.query.questions import CallFilter, Paging, checked, cursor_of
from subluminal.ledger.query.records import (
    CallDetail,
    CallPage,
    CallRecord,
    KernelRecord,
    PreviewRecord,
)
from subluminal.ledger.query.spans import growing_spans
from subluminal.ledger.query.terms import match_expression
from subluminal.ledger.store.segments import EventReader

_NAMES = (
    "id, call_id, run_id, server_name, tool_name, args_hash, decision, rule_id, status, "
    "latency_ms, bytes_in, bytes_out, preview_truncated, created_at, reason_code, severity, "
    "would_be, error_class, seq, transport, taint, retry_of"
)
_KERNEL = KernelRecord.__struct_fields__
_ROWS = (
    f"SELECT {', '.join('c.' + name for name in _NAMES.split(', '))}, {outcome_sql('c.')}, "
    "p.args_preview, "
    f"p.result_preview, p.redaction_flags, {', '.join('i.' + name for name in _KERNEL)} "
    "FROM tool_calls c LEFT JOIN previews p USING (id) LEFT JOIN intents i USING (id) "
)

_DECIDED = tuple(
    b'{"type":"%b"' % kind.encode()
    for kind in (EventType.TOOL_CALL_DECISION, EventType.CALL_ROUND, EventType.AUDIT_RECORD)
)
_MAX_SEARCHED = 20_000
"""Events after a call's start among which its further rounds are looked for."""


def find_calls(connection: apsw.Connection, wanted: CallFilter, paging: Paging) -> CallPage:
    """One page of calls, ordered by their start, then by the order of ingest."""
    checked(paging)
    if wanted.text is not None:
        keys = _keys_by_text(connection, wanted, paging)
    elif wanted.run is not None and wanted.args_hash is None:
        keys = _keys(connection, _path_of_run(wanted), paging)
    else:
        keys = _keys(connection, choose_path(connection, wanted), paging)
    records = _records(connection, [number for _, number in keys])
    more = len(keys) == paging.limit
    return CallPage(records, cursor_of(*keys[-1]) if more else None)


def show_call(connection: apsw.Connection, call_id: str) -> CallDetail | None:
    """One call with its events; the newest if several have this id; None if there is none."""
    row = connection.execute(
        "SELECT id, shim, end_shim, start_n, decision_n, end_n FROM tool_calls WHERE call_id = ? "
        "ORDER BY id DESC LIMIT 1",
        (call_id,),
    ).fetchone()
    if row is None:
        return None
    number, shim, end_shim, start_n, decision_n, end_n = row
    reader = EventReader(connection)
    own_end = end_n if end_shim is None else None
    own = {n for n in (start_n, decision_n, own_end) if n is not None}
    if start_n is not None:
        last = start_n + _MAX_SEARCHED if own_end is None else own_end
        own |= _decided(reader, call_id, shim, start_n + 1, last)
    lines = [reader.line(shim, n) for n in sorted(own)]
    if end_shim is not None:
        # Further rounds and the end are in the journal of the shim that took the call over.
        others = _decided(reader, call_id, end_shim, max(1, end_n - _MAX_SEARCHED), end_n)
        lines += [reader.line(end_shim, n) for n in sorted({*others, end_n})]
    events = [decode_stored(line) for line in lines if line is not None]
    record = _records(connection, [number])[0]
    readable = [event for event in events if event is not None]
    hint, retries = hints.hint_of_call(connection, number), _retries(connection, call_id)
    return CallDetail(record, hint, retries, readable)


def _retries(connection: apsw.Connection, call_id: str) -> list[str]:
    rows = connection.execute(
        "SELECT call_id FROM tool_calls INDEXED BY calls_by_retry WHERE retry_of = ? "
        "ORDER BY created_at, id",
        (call_id,),
    )
    return [str(found) for (found,) in rows]


def _decided(reader: EventReader, call_id: str, shim: int, first: int, last: int) -> set[int]:
    """The numbers of decisions and audit records about a call, from `first` to before `last`."""
    mark = b'"call_id":%b' % encode_json(call_id)
    found = set()
    for n in range(first, min(last, first + _MAX_SEARCHED)):
        line = reader.line(shim, n)
        if line is None:
            break
        if line.startswith(_DECIDED) and mark in line:
            found.add(n)
    return found


def _path_of_run(wanted: CallFilter) -> AccessPath:
    where, values = conditions(wanted, by_time=True)
    return AccessPath([Leg("calls_by_run", "run_id = ?", (wanted.run,))], where, values)


def _keys(connection: apsw.Connection, path: AccessPath, paging: Paging) -> list[Key]:
    """Asks every leg for a page, and merges the pages."""
    where, values = after_cursor(paging, "created_at", "id")
    where, values = [*path.where, *where], [*path.values, *values]
    order = order_by(paging, "created_at", "id")
    found: set[Key] = set()
    for leg in path.legs:
        sql = (
            f"SELECT created_at, id FROM tool_calls INDEXED BY {leg.by_index} "
            f"WHERE {' AND '.join([leg.where, *where])} {order} LIMIT ?"
        )
        rows = connection.execute(sql, (*leg.values, *values, paging.limit))
        found.update((at, number) for at, number in rows)
    return sorted(found, reverse=paging.newest_first)[: paging.limit]


def _keys_by_text(connection: apsw.Connection, wanted: CallFilter, paging: Paging) -> list[Key]:
    """Searches a short time first, and longer ones until the page is full.

    The text index knows row ids and no times, so it cannot return the newest matches by itself.
    """
    keys: list[Key] = []
    for span in growing_spans(connection, wanted, paging):
        within = structs.replace(wanted, since_ms=span.since_ms, until_ms=span.until_ms)
        where, values = conditions(within)
        more, cursor = after_cursor(paging, "created_at", "search.rowid")
        sql = (
            "SELECT created_at, id FROM search CROSS JOIN tool_calls ON id = search.rowid "
            "WHERE search MATCH ? AND search.rowid BETWEEN ? AND ? "
            f"{''.join(f'AND {each} ' for each in [*where, *more])}"
            f"{order_by(paging, 'created_at', 'search.rowid')} LIMIT ?"
        )
        text = match_expression(wanted.text or "")
        rows = (text, span.first_id, span.last_id, *values, *cursor, paging.limit)
        keys = [(at, number) for at, number in connection.execute(sql, rows)]
        if len(keys) == paging.limit:
            break
    return keys


def _records(connection: apsw.Connection, ids: list[int]) -> list[CallRecord]:
    if not ids:
        return []
    sql = f"{_ROWS} WHERE c.id IN ({', '.join('?' * len(ids))})"
    found = {row[0]: _record(row) for row in connection.execute(sql, ids)}
    return [found[number] for number in ids if number in found]


def _record(row: tuple[Any, ...]) -> CallRecord:
    told = row[-len(_KERNEL) :]
    kernel = None if told[0] is None else KernelRecord(*told)
    *call, args, result, flags = row[: -len(_KERNEL)]
    truncated, at = bool(call[12]), rfc3339(call[13])
    preview = PreviewRecord(
        truncated, args, result, [] if flags is None else msgspec.json.decode(flags)
    )
    return CallRecord(*[*call[:12], truncated, at, at, *call[14:], kernel, preview])
