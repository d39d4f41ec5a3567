"""`sub approve ID`: lets a call pass that waits for a person. Not for agents (no-call-waits, local-is-not-trusted)."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.screens.approvals import approval_row
from subluminal.config.places import places
from subluminal.contracts.vocabulary import Requirement
from subluminal.core.controls.grants import (
    DEFAULT_TTL_MS,
    MAX_USES,
    check_open,
    find_waiting,
    issue_grant,
)
from subluminal.errors import ExitCode, UsageError
from subluminal.operator.durations import told
from subluminal.operator.grant_length import grant_ms
from subluminal.operator.person import need_person
from subluminal.operator.said import said

EXAMPLE = """sub approve 4f1d
sub approve 4f1d --uses 3 --ttl 10m --reason "release week"
sub approve 4f1d --ticket OPS-17"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="of `sub approvals`, or its beginning")
    parser.add_argument("--uses", type=int, default=1, metavar="N", help="calls; default 1")
    parser.add_argument("--ttl", metavar="TIME", help="such as 10m; default 1h, or the rule's")
    parser.add_argument("--reason", type=said, metavar="TEXT", help="why, for the record")
    parser.add_argument(
        "--ticket", type=said, metavar="REF", help="the ticket that a rule may ask for"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    if not 1 <= args.uses <= MAX_USES:
        raise UsageError(f"`--uses` is 1 to {MAX_USES}")
    where = places(os.environ)
    need_person("sub approve", where)
    waiting = find_waiting(where, args.id)
    check_open(where, waiting)
    longest_ms = waiting.request.approval.grant_ms or None
    ttl_ms = grant_ms(args.ttl, longest_ms or DEFAULT_TTL_MS, waiting.slot.rule_id, longest_ms)
    if waiting.request.approval.requirement is Requirement.TICKET and not args.ticket:
        raise UsageError(
            f"rule `{waiting.slot.rule_id}` asks for a ticket", hint="say which with `--ticket REF`"
        )
    grant = issue_grant(
        where,
        waiting.request.run_id,
        waiting.slot,
        uses=args.uses,
        ttl_ms=ttl_ms,
        reason=args.reason,
        ticket=args.ticket,
        approval_id=waiting.approval_id,
    )
    if waiting.request.is_cut or waiting.request.args_preview is None:
        out.warning(
            "nobody could see these arguments whole: no more of them is on record",
            f"`sub deny {waiting.approval_id}` takes the grant back",
        )
    if args.json:
        out.json(approval_row(waiting._replace(state="approved", answer=grant)))
        return ExitCode.OK
    call = f"{waiting.slot.server_name}/{waiting.slot.tool_name}"
    uses = "once" if args.uses == 1 else f"{args.uses} times"
    out.line(f"approved: `{shown(call)}` with these arguments may pass {uses}, for {told(ttl_ms)}")
    out.talk("the agent may repeat the call now")
    return ExitCode.OK
