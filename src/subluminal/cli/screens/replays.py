"""Replayed calls for people: a table a run, and what it comes to in a sentence."""

from collections.abc import Iterable
from itertools import groupby

from subluminal.cli.output import Output, shown
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.tables import Column, print_table
from subluminal.cli.screens.width import terminal_width
from subluminal.contracts.vocabulary import Action
from subluminal.export.summary import counted
from subluminal.policy.replay.comparing import Change, Replayed
from subluminal.policy.replay.recorded import Said
from subluminal.policy.replay.tallying import Tally

_AT_ONCE = 500
"""Rows that are laid out together; a longer run continues under a heading of its own."""

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
    """One table a run, as its rows come."""
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
            "* depends on the first difference of this run: the agent would have acted otherwise"
        )
    out.line()


def _row(row: Replayed) -> list[Cell]:
    call = row.call
    return [
        Cell(f"{call.seq}{'*' if row.depends_on else ''}"),
        Cell(f"{call.server_name}/{call.tool_name}"),
        Cell(row.change.value, _COLOURS.get(row.change, "")),
        _said(call.decision.said),
        _said(row.now) if row.now else Cell(f"? ({row.doubt} not on record)", "magenta"),
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
    """What it comes to; what must be known to read it goes to the talk."""
    if not tally.calls:
        out.talk(
            "no calls to replay" if tally.runs else "no calls yet; `sub run -- AGENT` records some"
        )
        return
    changes = tally.changes
    told = [f"{changes[each]} {_words(each)}" for each in Change if changes[each]]
    runs, calls = counted(tally.runs, "run"), counted(tally.calls, "call")
    out.line(f"{calls} of {runs}: {', '.join(told)}")
    if tally.replaced_others:
        out.talk(
            f"in {counted(tally.replaced_others, 'run')} `{shown(policy_id)}` stood for all the "
            "policies of that time; --layer says which one it replaces"
        )
    if missing:
        names = ", ".join(each[:12] for each in missing)
        out.talk(f"policies that are not on record, and might have refused more: {names}")
    if tally.unrecorded:
        out.talk(
            f"{counted(tally.unrecorded, 'call')} counted and not on record: "
            "what depends on counters after them is undetermined"
        )


def _words(change: Change) -> str:
    return change.value.replace("_", " ")
