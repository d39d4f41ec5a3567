"""The whole proof, within one read transaction, so that it sees one consistent state."""

import zlib
from collections.abc import Callable

import apsw

from subluminal.config.places import Places
from subluminal.ledger.ingest.deriving import json_text
from subluminal.ledger.ingest.rows import BUCKET_MS
from subluminal.ledger.proof.calls import CallProof, feed_lines
from subluminal.ledger.proof.chains import (
    StoredShim,
    add_signed,
    check_chain,
    check_checkpoints,
    stored_shims,
)
from subluminal.ledger.proof.control import ControlProof
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.proof.hints import check_outcomes
from subluminal.ledger.proof.policies import PolicyProof
from subluminal.ledger.proof.runs import RunProof
from subluminal.ledger.proof.tools import ToolProof
from subluminal.ledger.store.counting import EVENTS_TOTAL, PREVIEWS_DROPPED, read_counter
from subluminal.ledger.store.segments import EventReader, of_shim_as_ingested

Progress = Callable[[int, int], None]
"""called with the number of shims done, and of all shims"""


def verify_ledger(
    connection: apsw.Connection,
    places: Places,
    *,
    run_id: str | None = None,
    progress: Progress = lambda done, total: None,
) -> Report:
    """Proves the ledger, or one run."""
    report = Report()
    connection.execute("BEGIN")
    try:
        _verify(connection, places, run_id, progress, report)
    finally:
        connection.execute("ROLLBACK")
    return report


def _verify(
    connection: apsw.Connection,
    places: Places,
    run_id: str | None,
    progress: Progress,
    report: Report,
) -> None:
    shims = stored_shims(connection, run_id)
    report.shims = len(shims)
    heads = check_checkpoints(connection, places, report)
    if run_id is None:
        add_signed(shims, heads, report)
    else:
        wanted = {shim.shim_id for shim in shims}
        add_signed(shims, [head for head in heads if head.shim_id in wanted], report)
    shared = (RunProof(), PolicyProof(), ToolProof(), ControlProof())
    hints = uses = 0
    for done, shim in enumerate(shims):
        progress(done, len(shims))
        if report.is_full:
            return
        check_chain(connection, shim, report)
        proof = _check_calls(connection, shim, shared, report)
        report.calls += proof.calls
        hints += proof.hints
        uses += proof.grant_uses
    if run_id is None:
        for each in shared:
            each.compare(connection, report)
        _check_counts(connection, hints, uses, report)
    check_outcomes(connection, run_id, report)
    _fill(connection, report)


def _check_calls(
    connection: apsw.Connection,
    shim: StoredShim,
    shared: tuple[RunProof, PolicyProof, ToolProof, ControlProof],
    report: Report,
) -> CallProof:
    proof = CallProof(connection, shim, report)
    for segment in of_shim_as_ingested(connection, shim.id):
        if segment.is_dropped:
            proof.has_dropped = True
            continue
        try:
            lines = segment.lines()
        except zlib.error:
            # The proof of the chain reports the damage.
            continue
        others = feed_lines(proof, lines, segment.first_n)
        for each in shared:
            each.feed(others)
    proof.end()
    return proof


def _check_counts(connection: apsw.Connection, hints: int, uses: int, report: Report) -> None:
    """Reports rows that no event explains. By now every row that an event explains was found."""
    stored = connection.execute("SELECT count(*) FROM tool_calls").fetchone()
    if stored is not None and stored[0] > report.calls:
        _name_extra_calls(connection, report)
    row = connection.execute("SELECT count(*) FROM hints").fetchone()
    if row is not None and row[0] > hints:
        report.add("hints", f"{row[0] - hints} rows", "there is no event for them")
    row = connection.execute("SELECT count(*) FROM grant_uses").fetchone()
    if row is not None and row[0] > uses and not report.dropped_events:
        report.add("grant_uses", f"{row[0] - uses} rows", "there is no event for them")
    for table in ("previews", "hints"):
        sql = f"SELECT call_id FROM {table} WHERE id NOT IN (SELECT id FROM tool_calls)"
        for (call_id,) in connection.execute(sql):
            report.add(table, f"call `{call_id}`", "there is no such call")
    _check_rollups(connection, report)


def _name_extra_calls(connection: apsw.Connection, report: Report) -> None:
    """Reports calls whose first event is missing, or is an event of another call."""
    reader = EventReader(connection)
    seen: set[tuple[int, int]] = set()
    sql = (
        "SELECT call_id, run_id, shim, ifnull(start_n, ifnull(decision_n, end_n)) "
        "FROM tool_calls ORDER BY id"
    )
    for call_id, run_id, shim, n in connection.execute(sql):
        line = reader.line(shim, n or 0)
        has_event = line is not None and json_text(call_id).encode() in line
        if not has_event or (shim, n) in seen:
            where = f"call `{call_id}` of run `{run_id}`"
            report.add("tool_calls", where, "there is no event for it")
        seen.add((shim, n))
        if report.is_full:
            return


def _check_rollups(connection: apsw.Connection, report: Report) -> None:
    counted = (
        f"SELECT created_at / {BUCKET_MS}, server_name, tool_name, ifnull(decision, ''), "
        "ifnull(status, ''), ifnull(rule_id, ''), count(*) FROM tool_calls "
        "GROUP BY 1, 2, 3, 4, 5, 6"
    )
    stored = "SELECT bucket, server_name, tool_name, decision, status, rule_id, calls FROM rollups"
    for one, other in ((counted, stored), (stored, counted)):
        for row in connection.execute(f"SELECT * FROM ({one}) EXCEPT SELECT * FROM ({other})"):
            where = f"{row[1]}/{row[2]} at {int(row[0]) * BUCKET_MS}"
            report.add("rollups", where, "the count does not match the calls")
            return


def _fill(connection: apsw.Connection, report: Report) -> None:
    total = read_counter(connection, EVENTS_TOTAL)
    signed = connection.execute("SELECT ifnull(max(pos), 0) FROM checkpoints").fetchone()
    report.unanchored_events = total - (int(signed[0]) if signed else 0)
    row = connection.execute("SELECT count(*) FROM quarantine").fetchone()
    report.quarantined = int(row[0]) if row else 0
    report.previews_dropped = read_counter(connection, PREVIEWS_DROPPED)
