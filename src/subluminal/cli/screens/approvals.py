"""Calls that wait for approval: as a list, and one of them in full."""

from msgspec import UNSET, to_builtins

from subluminal.cli.output import shown
from subluminal.cli.screens import cells
from subluminal.cli.screens.cells import Cell
from subluminal.cli.screens.tables import Column, Screen
from subluminal.contracts.vocabulary import Requirement
from subluminal.core.controls.grants import Waiting

_COLOURS = {"pending": "yellow", "approved": "green", "denied": "red"}
_LABEL = 13
_NEEDS = {
    Requirement.APPROVAL: "`sub approve`, or `sub deny`",
    Requirement.CONFIRMATION: "`sub approve`, if these arguments are right",
    Requirement.TICKET: "`sub approve --ticket REF`",
    Requirement.STEP_UP: "`sub approve` at a terminal, with the passphrase of this home",
    Requirement.HUMAN: "`sub approve` at a terminal, unless you do it yourself",
}
"""How each requirement is met."""


def print_approvals(screen: Screen, everything: list[Waiting]) -> None:
    """Prints one line per approval."""
    columns = [
        Column("WHEN", right=True),
        Column("ID"),
        Column("STATE"),
        Column("NEEDS"),
        Column("AGENT", shrinks_to=6),
        Column("ENV"),
        Column("TOOL", shrinks_to=12),
        Column("RULE", shrinks_to=8),
        Column("ARGUMENTS", shrinks_to=12),
    ]
    screen.table(
        columns,
        [
            [
                screen.time(each.request.approval.requested_at),
                Cell(each.approval_id),
                _state(each),
                Cell(each.request.approval.requirement),
                Cell(each.request.identity.agent_id),
                Cell(each.request.identity.env),
                Cell(f"{each.request.call.server_name}/{each.request.call.tool_name}"),
                Cell(each.request.approval.rule_id),
                Cell(each.request.args_preview or cells.NOTHING),
            ]
            for each in everything
        ],
    )


def print_approval(screen: Screen, waiting: Waiting) -> None:
    """Prints one approval in full: which agent wants what, and which rule asks."""
    request, asked = waiting.request, waiting.request.approval
    who, call = request.identity, request.call
    name = f"{call.server_name}/{call.tool_name}"
    screen.out.line(screen.out.paint(shown(f"{name}  {asked.approval_id}"), "bold"))
    _field(screen, "state", _state(waiting), _answer(waiting))
    _field(screen, "why", cells.severity(asked.severity), f"rule {asked.rule_id}: {asked.message}")
    _field(screen, "needs", Cell(asked.requirement), _NEEDS[asked.requirement])
    _field(screen, "agent", Cell(who.agent_id), f"client {who.client}, env {who.env}")
    if who.principal:
        _field(screen, "principal", Cell(who.principal), "")
    workload = to_builtins(who.workload)
    if workload:
        told = ", ".join(f"{key} {value}" for key, value in workload.items())
        _field(screen, "workload", Cell(told), "")
    over = "has ended; an answer helps only if the run is resumed" if waiting.run_is_over else ""
    _field(screen, "run", Cell(request.run_id), over)
    tries = "once" if request.asked == 1 else f"{request.asked} times"
    _field(screen, "asked", Cell(asked.requested_at), f"tried {tries}")
    _field(screen, "waits until", Cell(asked.expires_at), "")
    _field(screen, "args_hash", Cell(call.args_hash), "")
    cut_off = " (truncated)" if request.is_cut else ""
    screen.out.line(f"arguments{cut_off}")
    text = request.args_preview
    screen.out.line(
        f"  {shown(text)}" if text is not None else "  not recorded (see `record.mode`)"
    )


def _state(waiting: Waiting) -> Cell:
    if waiting.state == "pending" and waiting.run_is_over:
        return Cell("pending, run ended", "dim")
    return Cell(waiting.state, _COLOURS.get(waiting.state, "dim"))


def _answer(waiting: Waiting) -> str:
    answer = waiting.answer
    if answer is None:
        return ""
    given = answer.given
    reason = "" if given.reason is UNSET else f": {given.reason}"
    if given.grant_id is UNSET:
        return f"by {given.by}{reason}"
    ticket = "" if given.ticket is UNSET else f", ticket {given.ticket}"
    uses = f"{waiting.used} of {given.uses} uses, until {given.expires_at}"
    return f"by {given.by}{ticket}, {uses}{reason}"


def _field(screen: Screen, label: str, value: Cell, more: str) -> None:
    screen.out.line(f"{label:<{_LABEL}}{screen.painted(value)}  {shown(more)}".rstrip())
