"""`sub agents attest ID`: prints a token that proves an agent to this home. Agents may not run it
(local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.operator.agents import attest
from subluminal.operator.amounts import milliseconds_in

EXAMPLE = """sub agents attest fixer --ttl 8h > token.jwt
sub agents attest fixer --run 0198c0de-7a54-7000-8000-000000000000"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", type=sentence, metavar="ID", help="a registered agent")
    parser.add_argument(
        "--ttl", default="1h", metavar="TIME", help="how long it is valid, such as 10m; default 1h"
    )
    parser.add_argument(
        "--run", type=sentence, metavar="RUN_ID", help="the only run that it is valid in"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    ttl_ms = milliseconds_in(args.ttl, "--ttl")
    where = places(os.environ)
    need_person("sub agents attest", where)
    token, expires_at = attest(where, args.id, ttl_ms=ttl_ms, run_id=args.run or None)
    if args.json:
        out.json({"token": token, "expires_at": expires_at})
    else:
        out.line(token)
    return ExitCode.OK
