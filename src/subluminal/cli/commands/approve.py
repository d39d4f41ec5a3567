"""`sub approve ID`: approves a waiting call (no-call-waits). Agents may not run it."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.operator.amounts import duration
from subluminal.operator.approving import approval_row, approve, check_uses

EXAMPLE = """sub approve 4f1d
sub approve 4f1d --uses 3 --ttl 10m --reason "release week"
sub approve 4f1d --ticket OPS-17"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="as `sub approvals` prints it; its start will do")
    parser.add_argument(
        "--uses", type=int, default=1, metavar="N", help="number of calls to let pass; default 1"
    )
    parser.add_argument(
        "--ttl", metavar="TIME", help="how long, such as 10m; default: as the rule says, or 1h"
    )
    parser.add_argument("--reason", type=sentence, metavar="TEXT", help="why, for the record")
    parser.add_argument(
        "--ticket", type=sentence, metavar="REF", help="a ticket, if the rule requires one"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    check_uses(args.uses)  # before anyone types a passphrase
    where = places(os.environ)
    need_person("sub approve", where)
    done = approve(
        where, args.id, uses=args.uses, ttl=args.ttl, reason=args.reason, ticket=args.ticket
    )
    waiting = done.waiting
    if done.is_blind:
        out.warning(
            "you approved arguments that are not recorded in full",
            f"`sub deny {waiting.approval_id}` revokes the grant",
        )
    if args.json:
        out.json(approval_row(waiting))
        return ExitCode.OK
    call = f"{waiting.slot.server_name}/{waiting.slot.tool_name}"
    uses = "once" if args.uses == 1 else f"{args.uses} times"
    ttl = duration(done.ttl_ms)
    out.line(f"approved: `{shown(call)}` with these arguments may pass {uses}, for {ttl}")
    out.talk("The agent may repeat the call now.")
    return ExitCode.OK
