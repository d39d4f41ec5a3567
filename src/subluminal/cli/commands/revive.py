"""`sub revive`: lifts a stop, or lets a run without its state go on. Not for agents
(local-is-not-trusted)."""

import os

from subluminal.cli.asking import need_person
from subluminal.cli.commands.kill import add_target
from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.errors import ExitCode
from subluminal.operator.stopping import find_target, revive

EXAMPLE = """sub revive 0198c0de --reason "the policy has a rule for it now"
sub revive 0198c0de --reason "I removed its state myself"
sub revive --tool github/delete_repo
sub revive --all"""


def add_arguments(parser: Parser) -> None:
    add_target(parser)


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    need_person("sub revive", where)
    target = find_target(where, run=args.run, agent=args.agent, tool=args.tool, everything=args.all)
    done = revive(where, target, reason=args.reason)
    if not done.is_recorded:
        out.warning(
            "the stop is lifted, but that could not be recorded", f"check `{where.journal}`"
        )
    if args.json:
        runs = [run.run_id for run in done.runs]
        renewed = {"renewed": True} if done.is_renewed else {}
        out.json({**done.stop._asdict(), "state": "revived", "runs": runs, **renewed})
        return ExitCode.OK
    out.line(f"revived {shown(str(target))}: the policy decides its calls again")
    if done.is_renewed:
        out.talk("The run has a new state: its budgets and windows start from zero.")
    if done.stop.hard:
        out.talk("Its servers were stopped, so the client must start them again.")
    return ExitCode.OK
