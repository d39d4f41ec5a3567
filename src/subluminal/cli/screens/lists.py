"""The lists of `sub query` and `sub hints`: calls, runs, hints, intents, approvals and tools."""

from typing import Any

from subluminal.cli.output import shown
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.tables import Column, Screen, cut
from subluminal.contracts.vocabulary import Action
from subluminal.ledger.filter.fields import RUNNING

Row = dict[str, Any]

_WHEN = Column("WHEN", right=True)
_MARKS = {
    Action.BLOCK: "B",
    Action.REJECT_WITH_HINT: "H",
    Action.THROTTLE: "T",
    Action.TERMINATE_RUN: "X",
}

WIDE = 100
"""Width of a terminal that has room for a run's id beside the arguments."""
VERY_WIDE = 140
"""Width of a terminal that has room for outcomes too."""
_MAX_ARGUMENTS = 200
"""Characters of the arguments that are printed in a pipe, where nothing else is cut."""

_OUTCOME_COLOURS = {"followed": "green", "retried": "yellow", "gave_up": "red"}


def print_calls(screen: Screen, rows: list[Row]) -> None:
    """Prints one line per call."""
    columns = [
        _WHEN,
        Column("CALL"),
        Column("RUN", needs=WIDE),
        Column("DECISION"),
        Column("OUTCOME", needs=VERY_WIDE),
        Column("TOOL", shrinks_to=10),
        Column("STATUS"),
        Column("TIME", right=True),
        Column("WHY", shrinks_to=4),
        Column("ARGUMENTS", shrinks_to=6),
    ]
    screen.table(columns, [_call(screen, row) for row in rows])


def _call(screen: Screen, row: Row) -> list[Cell]:
    # A refused call has no status or duration of its own.
    is_refused = row["decision"] not in (None, Action.ALLOW)
    return [
        screen.time(row["ts"]),
        screen.id(row["call_id"]),
        screen.id(row["run_id"]),
        cells.decision(row["decision"], row["would_be"]),
        Cell(row["outcome"] or cells.NOTHING),
        Cell(f"{row['server_name']}/{row['tool_name']}"),
        Cell() if is_refused else cells.outcome(row["status"], row["error_class"]),
        Cell() if is_refused else cells.took(row["status"], row["error_class"], row["latency_ms"]),
        Cell(cells.decided_by(row) or cells.NOTHING),
        arguments(row),
    ]


def arguments(row: Row) -> Cell:
    """Formats the beginning of a call's arguments, as they were recorded."""
    text = row["preview"]["args_preview"]
    return Cell() if text is None else Cell(cut(shown(text[: _MAX_ARGUMENTS + 1]), _MAX_ARGUMENTS))


def print_runs(screen: Screen, rows: list[Row]) -> None:
    """Prints one line per run."""
    columns = [
        _WHEN,
        Column("RUN"),
        Column("STATUS"),
        Column("AGENT", shrinks_to=6),
        Column("CLIENT", shrinks_to=6),
        Column("CALLS", right=True),
        Column("REFUSED"),
        Column("ERR", right=True),
        Column("WORST"),
        Column("TIME", right=True),
    ]
    table = [_run(screen, row) for row in rows]
    reasons = [cells.why(row["summary"]) for row in rows]
    if any(reasons):
        columns.append(Column("WHY", shrinks_to=8))
        for line, why in zip(table, reasons, strict=True):
            line.append(Cell(why or cells.NOTHING))
    screen.table(columns, table)


def _run(screen: Screen, row: Row) -> list[Cell]:
    counts = row["decisions"]
    refused = [f"{counts[action]}{mark}" for action, mark in _MARKS.items() if counts.get(action)]
    errors = row["errors"] + row["unknown"]
    return [
        screen.time(row["started_at"]),
        screen.id(row["run_id"]),
        cells.status(row["status"] or RUNNING),
        Cell(row["agent_id"]),
        Cell(row["client"]),
        Cell(row["calls"]),
        Cell(" ".join(refused) or cells.NOTHING, "yellow" if refused else ""),
        Cell(errors or cells.NOTHING, "red" if errors else ""),
        cells.severity(row["worst_severity"]),
        cells.duration(row["duration_ms"]),
    ]


def print_hints(screen: Screen, rows: list[Row]) -> None:
    """Prints the hints that agents got, and how they reacted."""
    columns = [
        _WHEN,
        Column("CALL"),
        Column("RULE", shrinks_to=8),
        Column("KIND"),
        Column("OUTCOME"),
        Column("HINT", shrinks_to=16),
    ]
    screen.table(
        columns,
        [
            [
                screen.time(row["created_at"]),
                screen.id(row["call_id"]),
                Cell(row["rule_id"] or cells.NOTHING),
                Cell(row["hint_kind"]),
                Cell(row["outcome"], _OUTCOME_COLOURS.get(row["outcome"], "")),
                Cell(row["hint_text"]),
            ]
            for row in rows
        ],
    )


def print_intents(screen: Screen, rows: list[Row]) -> None:
    """Prints what packs decided, and how far each execution is."""
    columns = [
        _WHEN,
        Column("CALL"),
        Column("RUN", needs=WIDE),
        Column("KERNEL"),
        Column("INTENT", shrinks_to=12),
        Column("CODE", shrinks_to=6),
        Column("STATUS"),
        Column("TAINT"),
        Column("BY", needs=WIDE),
        Column("NONCE", shrinks_to=6, needs=WIDE),
        Column("HASH"),
    ]
    screen.table(columns, [_intent(screen, row) for row in rows])


def _intent(screen: Screen, row: Row) -> list[Cell]:
    pack = f"{row['pack']}/" if row["pack"] else ""
    return [
        screen.time(row["ts"]),
        screen.id(row["call_id"] or cells.NOTHING),
        screen.id(row["run_id"]),
        cells.kernel_decision(row["decision_kind"]),
        Cell(f"{pack}{row['intent_kind']}"),
        Cell(row["refusal_code"] or cells.NOTHING),
        cells.execution(row["status"]),
        cells.taint(row["taint"]),
        Cell(row["principal"] or cells.NOTHING),
        Cell(row["nonce"] or cells.NOTHING),
        Cell(cells.short_hash(row["intent_hash"])),
    ]


def print_recovery(screen: Screen, rows: list[Row]) -> None:
    """Prints how often a hint helped an agent to recover; per rule, client or both."""
    names = [name for name in ("rule_id", "client") if any(row[name] for row in rows)]
    headings = {"rule_id": Column("RULE", shrinks_to=12), "client": Column("CLIENT", shrinks_to=6)}
    counts = ["HINTS", "FOLLOWED", "RETRIED", "GAVE UP", "PENDING", "HELPED"]
    screen.table(
        [*(headings[name] for name in names), *(Column(count, right=True) for count in counts)],
        [[*(Cell(row[name] or cells.NOTHING) for name in names), *_recovery(row)] for row in rows],
    )


def _recovery(row: Row) -> list[Cell]:
    settled = row["issued"] - row["pending"]
    helped = f"{100 * row['followed'] // settled}%" if settled else cells.NOTHING
    return [
        Cell(row["issued"]),
        *(Cell(row[name] or cells.NOTHING) for name in _OUTCOME_COLOURS),
        Cell(row["pending"] or cells.NOTHING),
        Cell(helped, "green" if settled and row["followed"] == settled else ""),
    ]


def print_asked(screen: Screen, rows: list[Row]) -> None:
    """Prints which calls asked for approval, and the answers."""
    columns = [
        _WHEN,
        Column("ID"),
        Column("STATE"),
        Column("TOOL", shrinks_to=12),
        Column("RULE", shrinks_to=8),
        Column("BY"),
        Column("REASON", shrinks_to=12),
    ]
    colours = {"pending": "yellow", "approved": "green", "used": "green", "denied": "red"}
    nobody = {"by": cells.NOTHING, "reason": None}
    screen.table(
        columns,
        [
            [
                screen.time(row["requested_at"]),
                Cell(row["approval_id"]),
                Cell(row["state"], colours.get(row["state"], "dim")),
                Cell(f"{row['server_name']}/{row['tool_name']}"),
                Cell(row["rule_id"]),
                Cell(answer["by"]),
                Cell(answer["reason"] or cells.NOTHING),
            ]
            for row in rows
            for answer in [row["answer"] or nobody]
        ],
    )


def print_tools(screen: Screen, rows: list[Row]) -> None:
    """Prints every tool, how often it was called, and when its definition last changed."""
    columns = [
        Column("SERVER", shrinks_to=12),
        Column("TOOL", shrinks_to=12),
        Column("CALLS", right=True),
        Column("REFUSED", right=True),
        Column("ERRORS", right=True),
        Column("CHANGED"),
    ]
    screen.table(
        columns,
        [
            [
                Cell(row["server_name"]),
                Cell(row["tool_name"]),
                Cell(row["calls"]),
                Cell(row["refused"], "yellow" if row["refused"] else ""),
                Cell(row["errors"], "red" if row["errors"] else ""),
                screen.time(row["changed_at"]) if row["changed_at"] else Cell(cells.NOTHING),
            ]
            for row in rows
        ],
    )
