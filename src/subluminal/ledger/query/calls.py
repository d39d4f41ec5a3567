"""Finds calls: by filter, a page at a time, or one call by its id."""

from typing import Any

import apsw
import msgspec

from subluminal.clock import rfc3339
from subluminal.ledger.query import hints
from subluminal.ledger.query.planning import EVERYTHING, AccessPath, Leg, choose_path, conditions
from subluminal.ledger.query.questions import CallFilter, Paging, checked, cursor_of, numbers_of
from subluminal.ledger.query.records import CallDetail, CallPage, CallRecord, PreviewRecord
from subluminal.ledger.query.terms import match_expression
from subluminal.ledger.store.segments import EventReader

_NAMES = (
    "id, call_id, run_id, server_name, tool_name, args_hash, decision, rule_id, status, "
    "latency_ms, bytes_in, bytes_out, preview_truncated, created_at, reason_code, severity, "
    "would_be, error_class, seq, transport"
)
_ROWS = (
    f"SELECT {', '.join('c.' + name for name in _NAMES.split(', '))}, p.args_preview, "
    "p.result_preview, p.redaction_flags FROM tool_calls c LEFT JOIN previews p USING (id) "
)


def find_calls(connection: apsw.Connection, wanted: CallFilter, paging: Paging) -> CallPage:
    """One page of calls: ordered by time within a run, otherwise in the order of ingest."""
    checked(paging)
    if wanted.run is not None and wanted.text is None and wanted.args_hash is None:
        return _of_run(connection, wanted, paging)
    if wanted.text is not None:
        ids = _ids_by_text(connection, wanted, paging)
    else:
        ids = _ids(connection, _path(connection, wanted), paging)
    records = _records(connection, ids)
    more = len(ids) == paging.limit
    return CallPage(records, cursor_of(ids[-1]) if more else None)


def show_call(connection: apsw.Connection, call_id: str) -> CallDetail | None:
    """One call with its events; the newest if several have this id; None if there is none."""
    row = connection.execute(
        "SELECT id, shim, start_n, decision_n, end_n FROM tool_calls WHERE call_id = ? "
        "ORDER BY id DESC LIMIT 1",
        (call_id,),
    ).fetchone()
    if row is None:
        return None
    number, shim, *places = row
    reader = EventReader(connection)
    lines = [reader.line(shim, n) for n in places if n is not None]
    events = [msgspec.json.decode(line) for line in lines if line is not None]
    record = _records(connection, [number])[0]
    return CallDetail(record, hints.hint_of_call(connection, number), events)


def _path(connection: apsw.Connection, wanted: CallFilter) -> AccessPath:
    if wanted.args_hash is None:
        return choose_path(connection, wanted)
    where, values = conditions(wanted)
    leg = Leg("substr(args_hash, 1, 12) = ?", (wanted.args_hash[:12],))
    return AccessPath([leg], where, values)


def _ids(connection: apsw.Connection, path: AccessPath, paging: Paging) -> list[int]:
    """Asks every leg for a page, and merges the pages."""
    where, values = list(path.where), list(path.values)
    if paging.cursor is not None:
        (last,) = numbers_of(paging.cursor, 1)
        where.append("id < ?" if paging.newest_first else "id > ?")
        values.append(last)
    direction = "DESC" if paging.newest_first else "ASC"
    found: set[int] = set()
    for leg in path.legs:
        terms = [leg.where, *where] if leg is not EVERYTHING else where
        sql = (
            f"SELECT id FROM tool_calls {'NOT INDEXED ' if leg is EVERYTHING else ''}"
            f"WHERE {' AND '.join(terms) or '1'} ORDER BY id {direction} LIMIT ?"
        )
        rows = connection.execute(sql, (*leg.values, *values, paging.limit))
        found.update(number for (number,) in rows)
    return sorted(found, reverse=paging.newest_first)[: paging.limit]


def _ids_by_text(connection: apsw.Connection, wanted: CallFilter, paging: Paging) -> list[int]:
    where, values = conditions(wanted)
    terms = ["search MATCH ?", *where]
    arguments: list[object] = [match_expression(wanted.text or ""), *values]
    if paging.cursor is not None:
        (last,) = numbers_of(paging.cursor, 1)
        terms.append("search.rowid < ?" if paging.newest_first else "search.rowid > ?")
        arguments.append(last)
    direction = "DESC" if paging.newest_first else "ASC"
    sql = (
        "SELECT id FROM search CROSS JOIN tool_calls ON id = search.rowid "
        f"WHERE {' AND '.join(terms)} ORDER BY search.rowid {direction} LIMIT ?"
    )
    return [number for (number,) in connection.execute(sql, (*arguments, paging.limit))]


def _of_run(connection: apsw.Connection, wanted: CallFilter, paging: Paging) -> CallPage:
    where, values = conditions(wanted)
    where[where.index("+run_id = ?")] = "run_id = ?"
    if paging.cursor is not None:
        values += numbers_of(paging.cursor, 2)
        where.append(f"(created_at, id) {'<' if paging.newest_first else '>'} (?, ?)")
    direction = "DESC" if paging.newest_first else "ASC"
    sql = (
        "SELECT id, created_at FROM tool_calls INDEXED BY calls_by_run "
        f"WHERE {' AND '.join(where)} ORDER BY created_at {direction}, id {direction} LIMIT ?"
    )
    keys = [(at, number) for number, at in connection.execute(sql, (*values, paging.limit))]
    records = _records(connection, [number for _, number in keys])
    more = len(keys) == paging.limit
    return CallPage(records, cursor_of(*keys[-1]) if more else None)


def _records(connection: apsw.Connection, ids: list[int]) -> list[CallRecord]:
    if not ids:
        return []
    sql = f"{_ROWS} WHERE c.id IN ({', '.join('?' * len(ids))})"
    found = {row[0]: _record(row) for row in connection.execute(sql, ids)}
    return [found[number] for number in ids if number in found]


def _record(row: tuple[Any, ...]) -> CallRecord:
    *call, args, result, flags = row
    truncated, at = bool(call[12]), rfc3339(call[13])
    preview = PreviewRecord(
        truncated, args, result, [] if flags is None else msgspec.json.decode(flags)
    )
    return CallRecord(*[*call[:12], truncated, at, at, *call[14:], preview])
