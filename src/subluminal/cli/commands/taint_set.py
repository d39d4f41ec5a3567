"""`sub taint set`: sets the level of a run. Agents may only lower it (local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.commands.taint_show import add_run, told
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.contracts.vocabulary import TAINT_RANK, Taint
from subluminal.errors import ExitCode
from subluminal.operator.tainting import set_level, show_level

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
    level = Taint(args.level)
    raises = TAINT_RANK[level] < TAINT_RANK[show_level(where, args.run).taint]
    if raises:
        need_person("sub taint set", where)
    done = set_level(where, args.run, level, args.reason, may_raise=raises)
    if not done.is_recorded:
        out.warning("the level is set, but that could not be recorded", f"check `{where.journal}`")
    if args.json:
        out.json({**done.level.plain(), "before": done.before.value})
    else:
        was = "nothing has changed" if done.before is level else f"it was {done.before}"
        out.line(shown(f"{told(done.level)}; {was}"))
    return ExitCode.OK
