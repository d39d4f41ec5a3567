"""One run in the terminal: who, how it went, and its calls along the time they took."""

from typing import Any

from subluminal.cli.output import shown
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.lists import Row, Screen
from subluminal.cli.screens.tables import Column
from subluminal.contracts.vocabulary import Action
from subluminal.ledger.filter.fields import RUNNING
from subluminal.timestamps import parse_rfc3339

_BAR = 16
_BLOCK, _POINT = "━", "╸"


def print_run(screen: Screen, run: Row, calls: list[Row], *, is_cut: bool) -> None:
    """The head, then a line a call, oldest first."""
    _head(screen, run)
    if not calls:
        screen.out.line("\n  no calls")
        return
    began = parse_rfc3339(run["started_at"])
    end = max(parse_rfc3339(call["ts"]) + (call["latency_ms"] or 0) for call in calls)
    columns = [
        Column("AT", right=True),
        Column("CALL"),
        Column("DECISION"),
        Column("TOOL", shrinks_to=12),
        Column("STATUS"),
        Column("TIME", right=True),
        Column("WHY", shrinks_to=8),
    ]
    if screen.width is not None:
        columns.insert(1, Column("TIMELINE"))
    screen.out.line()
    screen.table(columns, [_row(screen, call, began, end) for call in calls])
    if is_cut:
        screen.out.talk(
            f"the first {len(calls)} calls; see `sub query calls --run {run['run_id']}`"
        )


def _head(screen: Screen, run: Row) -> None:
    out = screen.out
    status = cells.status(run["status"] or RUNNING)
    painted = out.paint(status, status.colour) if status.colour else str(status)
    out.line(f"{out.paint(shown('run ' + run['run_id']), 'bold')}  {painted}")
    totals = run["summary"] or {}
    who = [f"{run['agent_id']} ({run['client']}, {run['env']})"]
    who += [f"by {run['principal']}"] if run["principal"] else []
    _field(screen, "agent", " ".join(who))
    workload: dict[str, Any] = run["workload"] or {}
    place = [str(workload[name]) for name in ("repo", "branch", "job_id") if workload.get(name)]
    if place or workload.get("repo_path"):
        _field(screen, "workload", " ".join(place) or str(workload["repo_path"]))
    if run["policy_id"] and run["policy_id"] != "none":
        _field(screen, "policy", f"{run['policy_id']} {run['policy_version']}, {run['mode']}")
    _field(screen, "began", run["started_at"])
    if totals:
        _field(
            screen,
            "calls",
            f"{totals['calls_total']}: {totals['calls_allowed']} allowed, "
            f"{totals['calls_blocked']} refused, {totals['calls_throttled']} throttled; "
            f"{totals['errors_total']} errors; took {cells.duration(totals['duration_ms'])}",
        )


def _field(screen: Screen, label: str, value: str) -> None:
    screen.out.line(f"  {screen.out.paint(f'{label:<8}', 'dim')}  {shown(value)}")


def _row(screen: Screen, call: Row, began: int, end: int) -> list[Cell]:
    at = parse_rfc3339(call["ts"]) - began
    is_refused = call["decision"] not in (None, Action.ALLOW)
    decision = cells.decision(call["decision"], call["would_be"])
    row = [
        Cell(f"+{cells.duration(max(0, at))}"),
        screen.id(call["call_id"]),
        decision,
        Cell(f"{call['server_name']}/{call['tool_name']}"),
        cells.status(None if is_refused else call["status"]),
        Cell() if is_refused else cells.duration(call["latency_ms"]),
        Cell(call["rule_id"] or cells.NOTHING),
    ]
    if screen.width is not None:
        row.insert(1, _bar(at, call["latency_ms"] or 0, end - began, decision.colour))
    return row


def _bar(at_ms: int, took_ms: int, whole_ms: int, colour: str) -> Cell:
    """Where the call stands in its run; never less than a point."""
    scale = _BAR / max(1, whole_ms)
    start = min(_BAR - 1, max(0, int(at_ms * scale)))
    size = min(_BAR - start, int(took_ms * scale))
    bar = _BLOCK * size or _POINT
    return Cell(" " * start + bar, colour)
