"""`sub approvals [ID]`: what waits for a person. Reads the home's files; needs no ledger."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.cli.screens.approvals import approval_row, print_approval, print_approvals
from subluminal.cli.screens.lists import Screen
from subluminal.cli.screens.width import terminal_width
from subluminal.clock import now
from subluminal.config.places import Places, places
from subluminal.core.controls.approval_files import MAX_WAITING
from subluminal.core.controls.grants import Waiting, all_waiting, find_waiting, full_runs
from subluminal.core.runs.living import known_run
from subluminal.errors import ExitCode

EXAMPLE = """sub approvals
sub approvals 4f1d
sub approvals --all --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="one approval, whole")
    parser.add_argument(
        "--run", metavar="RUN", help="of this run only, by its id, or that id's beginning or end"
    )
    parser.add_argument("--all", action="store_true", help="answered and expired ones too")
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    if args.id:
        found = [find_waiting(where, args.id)]
    else:
        everything = all_waiting(where)
        run_id = _run_named(args.run, everything, where)
        found = [
            each
            for each in everything
            if (args.all or each.state == "pending") and run_id in (None, each.request.run_id)
        ]
        _warn_of_floods(everything, out)
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


def _run_named(name: str | None, everything: list[Waiting], where: Places) -> str | None:
    if name is None or any(each.request.run_id == name for each in everything):
        return name
    return known_run(where, name)


def _warn_of_floods(everything: list[Waiting], out: Output) -> None:
    for run_id in full_runs(everything):
        out.warning(
            f"run `{run_id}` asks for nothing more until some of its {MAX_WAITING}"
            " approvals are answered",
            f"`sub kill {run_id}` stops it",
        )
