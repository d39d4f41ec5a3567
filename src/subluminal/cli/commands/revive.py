"""`sub revive`: lifts what `sub kill` stopped. Not for agents (local-is-not-trusted)."""

import os

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output
from subluminal.config.places import places
from subluminal.core.controls.kill_switch import lift_stop
from subluminal.errors import ExitCode, SubluminalError
from subluminal.operator.person import need_person
from subluminal.operator.stopping import add_target, cannot, concerned, record_switch, target_of
from subluminal.trust.identity.users import local_user

EXAMPLE = """sub revive 0198c0de --reason "the policy has a rule for it now"
sub revive --tool github/delete_repo
sub revive --all"""


def add_arguments(parser: Parser) -> None:
    add_target(parser)


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    need_person("sub revive", where)
    target = target_of(args, where)
    try:
        lifted = lift_stop(where.state, target.scope, target.name)
    except OSError as error:
        raise cannot(f"revive {target}", error, where) from None
    if lifted is None:
        raise SubluminalError(
            f"{target} is not stopped",
            hint="`sub kill --list` tells what is; a rule's TERMINATE_RUN is for good",
        )
    runs = concerned(where, target)
    done = lifted._replace(by=local_user(), reason=args.reason)
    if not record_switch(where, done, "revived", runs):
        out.warning("it is lifted, but that could not be recorded", f"see `{where.journal}`")
    if args.json:
        out.json({**done._asdict(), "state": "revived", "runs": [run.run_id for run in runs]})
        return ExitCode.OK
    out.line(f"revived {target}: the policy decides its calls again")
    if lifted.hard:
        out.talk("its servers were stopped: the client must start them again")
    return ExitCode.OK
