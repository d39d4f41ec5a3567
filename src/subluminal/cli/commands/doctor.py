"""`sub doctor`: checks that everything here works, and tells what to do about each problem."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.counts import counted
from subluminal.errors import ExitCode
from subluminal.operator.doctor.checks import Check, all_checks

EXAMPLE = """sub doctor
sub doctor --json"""

_NAME_WIDTH = len("client (opencode)")


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print {checks: […]}")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    made: list[Check] = []
    for checker in all_checks():
        for check in checker(where):
            made.append(check)
            if not args.json:
                _print(check, out)
    problems = sum(not check.ok for check in made)
    if args.json:
        out.json({"checks": [check._asdict() for check in made]})
    elif problems:
        out.line(f"\n{counted(problems, 'problem')} found.")
    else:
        out.line("\nAll checks passed.")
    return ExitCode.NO if problems else ExitCode.OK


def _print(check: Check, out: Output) -> None:
    word = out.paint("ok  ", "green") if check.ok else out.paint("FAIL", "red")
    out.line(f"{word}  {check.name:<{_NAME_WIDTH}}  {shown(check.detail)}")
    if check.hint:
        out.line(f"      {'':<{_NAME_WIDTH}}  {out.paint('hint', 'cyan')}: {shown(check.hint)}")
