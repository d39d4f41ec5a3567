"""`sub deny ID`: denies a waiting call. The call's next try is refused with the reason."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.operator.approving import approval_row, deny

EXAMPLE = """sub deny 4f1d --reason "not on a Friday"
sub deny 4f1d"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="as `sub approvals` prints it; its start will do")
    parser.add_argument("--reason", type=sentence, metavar="TEXT", help="what the agent is told")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    need_person("sub deny", where)
    done = deny(where, args.id, reason=args.reason)
    if args.json:
        out.json(approval_row(done.waiting))
        return ExitCode.OK
    slot = done.waiting.slot
    revoked = ", and its grant is revoked" if done.was_granted else ""
    call = shown(f"{slot.server_name}/{slot.tool_name}")
    out.line(f"denied: `{call}` with these arguments is blocked in this run{revoked}")
    return ExitCode.OK
