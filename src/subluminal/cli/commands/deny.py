"""`sub deny ID`: says no to a call that waits for a person; its next try is told why (no-call-waits)."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.cli.screens.approvals import approval_row
from subluminal.config.places import places
from subluminal.core.controls.grants import deny, find_waiting
from subluminal.errors import ExitCode
from subluminal.operator.person import need_person
from subluminal.operator.said import said

EXAMPLE = """sub deny 4f1d --reason "not on a Friday"
sub deny 4f1d"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="of `sub approvals`, or its beginning")
    parser.add_argument("--reason", type=said, metavar="TEXT", help="what the agent is told")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    need_person("sub deny", where)
    waiting = find_waiting(where, args.id)
    was_granted = waiting.state == "approved"
    answer = deny(where, waiting, reason=args.reason)
    if args.json:
        out.json(approval_row(waiting._replace(state="denied", answer=answer)))
        return ExitCode.OK
    call = f"{waiting.slot.server_name}/{waiting.slot.tool_name}"
    before = ", and the grant is taken back" if was_granted else ""
    out.line(f"denied: `{shown(call)}` with these arguments is blocked in this run{before}")
    return ExitCode.OK
