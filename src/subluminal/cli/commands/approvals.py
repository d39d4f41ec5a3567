"""`sub approvals [ID]`: lists calls waiting for approval. Reads the home's files, no ledger."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.approvals import print_approval, print_approvals
from subluminal.cli.screens.tables import Screen
from subluminal.clock import now
from subluminal.config.places import Places, places
from subluminal.core.controls.approval_files import MAX_WAITING
from subluminal.core.controls.grants import find_waiting
from subluminal.errors import ExitCode
from subluminal.operator.approving import approval_row, list_approvals

EXAMPLE = """sub approvals
sub approvals 4f1d
sub approvals --all --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="show one approval in full; the start of its id will do"
    )
    parser.add_argument(
        "--run", metavar="RUN", help="only this run; the start or end of its id will do"
    )
    parser.add_argument("--all", action="store_true", help="include answered and expired approvals")
    parser.add_argument("--json", action="store_true", help="print one JSON object per approval")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    if args.id:
        return _show(args, out, where)
    listed = list_approvals(where, run=args.run, every=args.all)
    for run_id in listed.full_runs:
        out.warning(
            f"run `{run_id}` cannot ask for more until some of its {MAX_WAITING} approvals are"
            " answered",
            f"`sub kill {run_id}` stops the run",
        )
    if args.json:
        for each in listed.approvals:
            out.json(approval_row(each))
    elif listed.approvals:
        print_approvals(Screen(out, now().wall_ms), listed.approvals)
        if out.out_is_terminal:
            out.talk(
                "\nSee one in full with `sub approvals ID`. Answer it with `sub approve ID` or"
                " `sub deny ID`."
            )
    else:
        out.talk("No approvals yet." if args.all else "No calls are waiting for approval.")
    return ExitCode.OK


def _show(args: Args, out: Output, where: Places) -> int:
    found = find_waiting(where, args.id)
    if args.json:
        out.json(approval_row(found))
    else:
        print_approval(Screen(out, now().wall_ms), found)
    return ExitCode.OK
