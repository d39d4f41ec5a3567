"""`sub approve ID`: approves a waiting call (no-call-waits). Agents may not run it."""

import os

from subluminal.cli.asking import agreed, is_at_terminal, need_person, need_step_up
from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.loading import load_settings
from subluminal.config.places import Places, places
from subluminal.contracts.vocabulary import Requirement
from subluminal.core.controls.grants import Waiting
from subluminal.errors import ExitCode, SubluminalError
from subluminal.operator.amounts import duration
from subluminal.operator.approving import approval_row, approve, check_uses, named
from subluminal.operator.tickets import check_form

EXAMPLE = """sub approve 4f1d
sub approve 4f1d --uses 3 --ttl 10m --reason "release week"
sub approve 4f1d --ticket OPS-17"""

_WHAT = "sub approve"


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
    settings = load_settings(where.settings).approvals
    if args.ticket is not None:
        check_form(args.ticket, settings)
    done = approve(
        where,
        args.id,
        uses=args.uses,
        ttl=args.ttl,
        reason=args.reason,
        ticket=args.ticket,
        met=_meet(where, args.id, out),
        settings=settings,
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


def _meet(where: Places, approval_id: str, out: Output) -> Requirement | None:
    """Sees to it that a person acts, as the rule requires. Returns the requirement."""
    waiting = named(where, approval_id)
    required = None if waiting is None else waiting.request.approval.requirement
    if required is Requirement.STEP_UP:
        need_step_up(_WHAT, where)
        return required
    need_person(_WHAT, where)
    if waiting is not None and required is Requirement.HUMAN:
        _agree(waiting, out)
    return required


def _agree(waiting: Waiting, out: Output) -> None:
    """Raises SubluminalError unless a person at the terminal agrees."""
    if not is_at_terminal():
        raise SubluminalError(
            f"rule `{waiting.slot.rule_id}` leaves this to a human, and there is no terminal to"
            " ask at",
            hint="run the command yourself in a terminal; no script can do it",
        )
    call = waiting.request.call
    out.talk(f"{shown(call.server_name)}/{shown(call.tool_name)}")
    out.talk(shown(waiting.request.args_preview or "its arguments are not recorded"))
    if not agreed("approve this call?"):
        raise SubluminalError("nothing was approved")
