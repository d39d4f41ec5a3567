"""`sub intent release HASH`: lets an intent execute again. Agents may not run it
(local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode

EXAMPLE = """sub intent release 9f86d081 --reason "the bank has no such refund"
sub intent release 9f86d081 --reason "undone by hand" --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "hash", metavar="HASH", help="hash of the intent; its first 8 digits will do"
    )
    parser.add_argument(
        "--reason",
        type=sentence,
        required=True,
        metavar="TEXT",
        help="how you know that it may execute again, for the record",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    from subluminal.operator.releasing import release_intent  # loads SQLite

    where = places(os.environ)
    need_person("sub intent release", where)
    done = release_intent(where, args.hash, args.reason)
    if not done.is_recorded:
        out.warning(
            "the intent is released, but that could not be recorded", f"check `{where.journal}`"
        )
    if args.json:
        out.json(done.plain())
        return ExitCode.OK
    entry, holder = done.row
    out.line(
        shown(f"released: `{entry.kind}` of {entry.at}, which {holder} claimed, may execute again")
    )
    return ExitCode.OK
