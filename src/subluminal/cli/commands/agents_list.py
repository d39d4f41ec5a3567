"""`sub agents list`: the agents that people registered."""

import os

from subluminal.cli.commands.agents_register import LEVELS
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.contracts.agents import Registration
from subluminal.contracts.vocabulary import TrustLevel
from subluminal.errors import ExitCode
from subluminal.operator.agents import agent_row, listed

EXAMPLE = """sub agents list
sub agents list --trust-min verified --json"""

_HEADS = ("agent", "type", "trust", "unattested", "owner", "state")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--type", type=sentence, metavar="TYPE", help="only agents of this type")
    parser.add_argument(
        "--trust-min", choices=LEVELS, help="only agents with this trust or more, once proven"
    )
    parser.add_argument("--all", action="store_true", help="revoked agents too")
    parser.add_argument("--json", action="store_true", help="print one JSON object per agent")


def run(args: Args, out: Output) -> int:
    found = listed(
        places(os.environ),
        agent_type=args.type,
        trust_min=args.trust_min and TrustLevel(args.trust_min),
        everything=args.all,
    )
    for problem in found.problems:
        out.warning(problem, "its agent counts as unregistered until it is registered again")
    if args.json:
        for each in found.registrations:
            out.json(agent_row(each))
    elif found.registrations:
        _print(found.registrations, out)
    else:
        out.talk("No such agents. `sub agents register ID` registers one.")
    return ExitCode.OK


def _print(registrations: list[Registration], out: Output) -> None:
    table = [_HEADS, *(_cells(each) for each in registrations)]
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEADS))]
    for number, cells in enumerate(table):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        line = "  ".join(padded).rstrip()
        out.line(out.paint(line, "bold") if number == 0 else line)


def _cells(each: Registration) -> tuple[str, ...]:
    return (
        shown(each.agent_id),
        shown(each.agent_type or "-"),
        each.trust_level.value,
        each.unattested.value,
        shown(each.owner),
        each.state.value,
    )
