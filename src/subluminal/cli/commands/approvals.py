"""`sub approvals [ID]`: what waits for a person. Reads the home's files; needs no ledger."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.approvals import approval_row, print_approval, print_approvals
from subluminal.cli.screens.lists import Screen
from subluminal.cli.screens.width import terminal_width
from subluminal.clock import now
from subluminal.config.places import places
from subluminal.core.grants import all_waiting, find_waiting
from subluminal.errors import ExitCode

EXAMPLE = """sub approvals
sub approvals 4f1d
sub approvals --all --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="one approval, whole")
    parser.add_argument("--run", metavar="RUN", help="of this run only")
    parser.add_argument("--all", action="store_true", help="answered and expired ones too")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    if args.id:
        found = [find_waiting(where, args.id)]
    else:
        found = [
            each
            for each in all_waiting(where)
            if (args.all or each.state == "pending") and args.run in (None, each.request.run_id)
        ]
    screen = Screen(out, terminal_width(), now().wall_ms)
    if args.json:
        for each in found:
            out.json(approval_row(each))
    elif args.id:
        print_approval(screen, found[0])
    elif found:
        print_approvals(screen, found)
        if out.out_is_terminal:
            out.talk("\n`sub approvals ID` shows one, `sub approve ID` or `sub deny ID` answers it")
    else:
        out.talk("nothing waits for a person" if not args.all else "nobody was asked yet")
    return ExitCode.OK
