"""The whole proof, within one read transaction, so that it sees one consistent state."""

import zlib
from collections.abc import Callable, Sequence

import apsw

from subluminal.config.places import Places
from subluminal.ledger.ingest.deriving import json_text
from subluminal.ledger.proof.calls import CallProof, feed_lines
from subluminal.ledger.proof.chains import ChainProof, StoredShim, add_signed, stored_shims
from subluminal.ledger.proof.checkpoints import (
    check_anchors,
    check_checkpoints,
    load_keys,
    sealed_since,
)
from subluminal.ledger.proof.control import ControlProof
from subluminal.ledger.proof.derived import check_derived
from subluminal.ledger.proof.drops import DropProof
from subluminal.ledger.proof.file import check_pages, check_schema
from subluminal.ledger.proof.findings import Report
from subluminal.ledger.proof.hints import check_outcomes
from subluminal.ledger.proof.policies import PolicyProof
from subluminal.ledger.proof.runs import RunProof
from subluminal.ledger.proof.seals import HomeSeal
from subluminal.ledger.proof.search import check_search
from subluminal.ledger.proof.tools import ToolProof
from subluminal.ledger.store.counting import (
    EVENTS_TOTAL,
    PREVIEWS_DROPPED,
    QUARANTINED,
    read_counter,
)
from subluminal.ledger.store.segments import EventReader, of_shim_as_ingested
from subluminal.ledger.upkeep.anchors import Anchor, recorded_anchors
from subluminal.ledger.upkeep.note import read_note
from subluminal.ledger.upkeep.written import Counts, count_written, find_behind

_ROWS_OF_CALLS = ("hints", "intents", "grant_uses")
"""Tables with rows of some calls. `CallProof` counts the rows that events explain."""

Progress = Callable[[int, int], None]
"""called with the number of shims done, and of all shims"""


def verify_ledger(
    connection: apsw.Connection,
    places: Places,
    *,
    run_id: str | None = None,
    anchors: Sequence[Anchor] = (),
    progress: Progress = lambda done, total: None,
) -> Report:
    """Proves the ledger, or one run. Holds it to the given anchors, and to those in the home."""
    report = Report()
    # Before the ledger is read: shims and ledgerd go on writing meanwhile.
    counts, note = count_written(places, run_id), read_note(places)
    connection.execute("BEGIN")
    try:
        check_schema(connection, report)
        if run_id is None:
            check_pages(connection, report)
        if report.findings:
            return report  # what is read through such a file proves nothing
        keys = load_keys(places)
        shims = stored_shims(connection, run_id)
        report.shims = len(shims)
        heads = check_checkpoints(connection, places, note, keys, report)
        if run_id is None:
            add_signed(shims, heads, report)
        else:
            wanted = {shim.shim_id for shim in shims}
            add_signed(shims, [head for head in heads if head.shim_id in wanted], report)
        check_anchors(connection, [*recorded_anchors(places), *anchors], keys, report)
        drops = DropProof(connection, keys.home, report)
        seal = HomeSeal(places, sealed_since(connection))
        counted = {shim_id for _, shim_id in counts}
        chains = [
            ChainProof(connection, shim, drops, seal, report, is_counted=shim.shim_id in counted)
            for shim in shims
        ]
        _check_written(connection, places, counts, report)
        _verify(connection, run_id, list(zip(shims, chains, strict=True)), progress, report)
        if run_id is None:
            drops.end()
        _fill(connection, report)
    except UnicodeDecodeError:
        report.add("file", "`ledger.db`", "a text in it is not UTF-8")
    finally:
        connection.execute("ROLLBACK")
    return report


def _verify(
    connection: apsw.Connection,
    run_id: str | None,
    shims: list[tuple[StoredShim, ChainProof]],
    progress: Progress,
    report: Report,
) -> None:
    """Proves each shim's chain and the rows derived from it, then what all shims share."""
    shared = (RunProof(), PolicyProof(), ToolProof(), ControlProof())
    rows = dict.fromkeys(_ROWS_OF_CALLS, 0)
    for done, (shim, chain) in enumerate(shims):
        progress(done, len(shims))
        if report.is_full:
            return
        chain.check()
        proof = _check_calls(connection, shim, shared, report)
        report.calls += proof.calls
        report.previews_missing += proof.previews_missing
        for table in rows:
            rows[table] += getattr(proof, table)
    if run_id is None:
        for each in shared:
            each.compare(connection, report)
        _check_counts(connection, rows, report)
        shared[0].compare_calls(connection, report)
        check_derived(connection, report)
        check_search(connection, report)
    check_outcomes(connection, run_id, report)


def _check_written(
    connection: apsw.Connection, places: Places, counts: Counts, report: Report
) -> None:
    """Reports events that shims wrote, and that are neither in the ledger nor in a journal."""
    for behind in find_behind(connection, places, counts):
        report.unread_events += behind.unread
        if behind.lost:
            on_record = max(behind.stored, behind.journalled)
            report.add(
                "journal",
                f"shim `{behind.shim_id}` of run `{behind.run}`",
                f"it wrote {behind.counted} events, and {on_record} are left: its journal was "
                "deleted or cut short, or a power failure lost its end",
            )


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
        shared[0].runs |= proof.take_runs()
    proof.end()
    return proof


def _check_counts(connection: apsw.Connection, rows: dict[str, int], report: Report) -> None:
    """Reports rows that no event explains. By now every row that an event explains was found."""
    stored = connection.execute("SELECT count(*) FROM tool_calls").fetchone()
    if stored is not None and stored[0] > report.calls:
        _name_extra_calls(connection, report)
    for table, found in rows.items():
        row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        if row is not None and row[0] > found:
            report.add(table, f"{row[0] - found} rows", "there is no event for them")
    for table in ("previews", "hints", "intents"):
        sql = f"SELECT call_id FROM {table} WHERE id NOT IN (SELECT id FROM tool_calls)"
        for (call_id,) in connection.execute(sql):
            report.add(table, f"call `{call_id}`", "there is no such call")


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


def _fill(connection: apsw.Connection, report: Report) -> None:
    total = read_counter(connection, EVENTS_TOTAL)
    signed = connection.execute("SELECT ifnull(max(pos), 0) FROM checkpoints").fetchone()
    report.unanchored_events = total - (int(signed[0]) if signed else 0)
    report.quarantined = read_counter(connection, QUARANTINED)
    report.previews_dropped = read_counter(connection, PREVIEWS_DROPPED)
