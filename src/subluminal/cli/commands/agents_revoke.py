"""`sub agents revoke ID`: refuses every call of an agent, for good. Agents may not run it
(local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.operator.agents import agent_row, revoke

EXAMPLE = """sub agents revoke fixer --reason "its key leaked"
sub agents revoke fixer --json"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", type=sentence, metavar="ID", help="a registered agent")
    parser.add_argument(
        "--reason", type=sentence, default="", metavar="TEXT", help="why, for the record"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    need_person("sub agents revoke", where)
    done = revoke(where, args.id, args.reason)
    if not done.is_recorded:
        out.warning(
            "the agent is revoked, but that could not be recorded", f"check `{where.journal}`"
        )
    if args.json:
        out.json(agent_row(done.registration))
        return ExitCode.OK
    out.line(shown(f"revoked: every call of `{args.id}` is refused, and the id never returns"))
    return ExitCode.OK
