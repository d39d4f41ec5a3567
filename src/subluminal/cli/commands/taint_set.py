"""`sub taint set`: sets the level of a run. Not for agents (local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.commands.taint_show import add_run, told
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.contracts.vocabulary import Taint
from subluminal.errors import ExitCode
from subluminal.operator.tainting import set_level

EXAMPLE = """sub taint set 0198c0de TRUSTED --reason "I read the page"
sub taint set 0198c0de UNTRUSTED --json"""


def add_arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument(
        "level", metavar="LEVEL", choices=[each.value for each in Taint], help="the new level"
    )
    parser.add_argument(
        "--reason", type=sentence, default="", metavar="TEXT", help="why, for the record"
    )


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    need_person("sub taint set", where)
    done = set_level(where, args.run, Taint(args.level), args.reason)
    if not done.is_recorded:
        out.warning("the level is set, but that could not be recorded", f"check `{where.journal}`")
    if args.json:
        out.json({**done.level.plain(), "before": done.before.value})
    else:
        out.line(shown(f"{told(done.level)}; it was {done.before}"))
    return ExitCode.OK
