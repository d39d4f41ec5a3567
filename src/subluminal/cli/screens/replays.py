"""Replayed calls, one table per run, and the totals in a sentence."""

from collections.abc import Iterable
from itertools import groupby

from subluminal.cli.output import Output, shown, terminal_width
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.tables import Column, print_table
from subluminal.contracts.vocabulary import Action
from subluminal.counts import counted
from subluminal.policy.replay.comparing import Change, Doubt, Replayed
from subluminal.policy.replay.recorded import Said
from subluminal.policy.replay.tallying import Tally

NOTHING_RECORDED = "No calls recorded yet. Start an agent with `sub run -- AGENT`."

_AT_ONCE = 500
"""Rows in one table; a longer run continues in another table."""

_COLOURS = {
    Change.NEWLY_BLOCKED: "red",
    Change.NEWLY_ALLOWED: "green",
    Change.CHANGED: "yellow",
    Change.UNDETERMINED: "magenta",
}
_COLUMNS = [
    Column("SEQ", right=True),
    Column("TOOL", shrinks_to=12),
    Column("CHANGE"),
    Column("WAS", shrinks_to=10),
    Column("NOW", shrinks_to=10),
]


def print_replayed(out: Output, rows: Iterable[Replayed]) -> None:
    """Prints one table per run as rows arrive."""
    for run_id, of_run in groupby(rows, key=lambda row: row.call.run_id):
        block: list[Replayed] = []
        for row in of_run:
            block.append(row)
            if len(block) == _AT_ONCE:
                _print_block(out, run_id, block)
                block = []
        _print_block(out, run_id, block)


def _print_block(out: Output, run_id: str, rows: list[Replayed]) -> None:
    if not rows:
        return
    out.line(out.paint(shown(f"run {run_id}"), "bold"))
    width = terminal_width() if out.out_is_terminal else None
    print_table(out, _COLUMNS, [_row(row) for row in rows], width)
    if any(row.depends_on for row in rows):
        out.line(
            "* follows a difference in this run, after which the agent might have acted differently"
        )
    out.line()


def _row(row: Replayed) -> list[Cell]:
    call = row.call
    return [
        Cell(f"{call.seq}{'*' if row.depends_on else ''}"),
        Cell(f"{call.server_name}/{call.tool_name}"),
        Cell(row.change.value, _COLOURS.get(row.change, "")),
        _said(call.decision.said),
        _said(row.now) if row.now else Cell(_doubted(row), "magenta"),
    ]


def _said(said: Said) -> Cell:
    would_be = said.would_be
    shown_as = cells.decision(said.action, would_be[0] if would_be else None)
    rule_id = would_be[1] if would_be else said.rule_id
    code = would_be[2] if would_be else said.reason_code
    by = f" by {rule_id}" if rule_id else ""
    is_plain = said.action is Action.ALLOW and not by
    return Cell(str(shown_as) if is_plain else f"{shown_as}{by} ({code})", shown_as.colour)


def print_tally(out: Output, tally: Tally, policy_id: str, missing: list[str]) -> None:
    """Prints the totals, and on stderr what a reader must know about them."""
    if not tally.calls:
        out.talk("No calls to replay." if tally.runs else NOTHING_RECORDED)
        return
    changes = tally.changes
    told = [f"{changes[each]} {_words(each)}" for each in Change if changes[each]]
    runs, calls = counted(tally.runs, "run"), counted(tally.calls, "call")
    out.line(f"{calls} of {runs}: {', '.join(told)}")
    if tally.replaced_others:
        out.talk(
            f"In {counted(tally.replaced_others, 'run')} `{shown(policy_id)}` replaced all policies"
            " of that time. Use --layer to replace only one."
        )
    if missing:
        names = ", ".join(each[:12] for each in missing)
        out.talk(f"These policies are not recorded and might have refused more calls: {names}.")
    if tally.unrecorded:
        out.talk(
            f"{counted(tally.unrecorded, 'call')} counted but not recorded: "
            "decisions that depend on counters after them are undetermined."
        )


def _words(change: Change) -> str:
    return change.value.replace("_", " ")


def _doubted(row: Replayed) -> str:
    missing = "not installed" if row.doubt is Doubt.PACK else "not recorded"
    return f"? ({row.doubt} {missing})"
