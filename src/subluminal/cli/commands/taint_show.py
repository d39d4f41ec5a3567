"""`sub taint show`: the level of a run, since when, and why."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.operator.tainting import RunLevel, show_level

EXAMPLE = """sub taint show 0198c0de
sub taint show 0198c0de --json"""


def add_arguments(parser: Parser) -> None:
    add_run(parser)


def add_run(parser: Parser) -> None:
    """Adds the arguments that `sub taint show` and `sub taint set` share."""
    parser.add_argument("run", metavar="RUN_ID", help="a run; the start or end of its id will do")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    level = show_level(places(os.environ), args.run)
    if args.json:
        out.json(level.plain())
    else:
        out.line(shown(told(level)))
    return ExitCode.OK


def told(level: RunLevel) -> str:
    """Returns the level in one line."""
    when = f"call {level.since_seq}" if level.since_seq else "its start"
    why = f" ({level.source})" if level.source else ""
    return f"run `{level.run_id}` is {level.taint} since {when}{why}"
