"""`sub kill`: stops a run, an agent, a tool or everything, from the next call on.

Anyone may do so, because an agent that stops itself does no harm. Only a person may lift a stop
(`sub revive`).
"""

import os

from subluminal.cli.frame import Args, Parser, sentence
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.core.controls.stops import Stop, stops
from subluminal.errors import ExitCode
from subluminal.operator.stopping import Switched, Target, find_target, stop

EXAMPLE = """sub kill 0198c0de --reason "it deletes branches"
sub kill --agent fixer --hard
sub kill --tool github/delete_repo
sub kill --all
sub kill --list"""


def add_arguments(parser: Parser) -> None:
    add_target(parser)
    parser.add_argument(
        "--hard", action="store_true", help="stop the servers' processes too, not only calls"
    )
    parser.add_argument("--list", action="store_true", help="list what is stopped")


def add_target(parser: Parser) -> None:
    """Adds the arguments that `sub kill` and `sub revive` share."""
    parser.add_argument(
        "run", nargs="?", metavar="RUN_ID", help="a run; the start or end of its id will do"
    )
    parser.add_argument(
        "--agent", type=sentence, metavar="ID", help="every run of an agent, now and later"
    )
    parser.add_argument(
        "--tool",
        type=sentence,
        metavar="SERVER/TOOL",
        help="a tool in every run; `*` stands for any server or tool",
    )
    parser.add_argument("--all", action="store_true", help="every run of this home")
    parser.add_argument(
        "--reason", type=sentence, default="", metavar="TEXT", help="why, for the record"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    if args.list:
        return _list(args, out, where.state)
    target = find_target(where, run=args.run, agent=args.agent, tool=args.tool, everything=args.all)
    done = stop(where, target, reason=args.reason, hard=args.hard)
    if not done.is_recorded:
        out.warning("the stop is in force but could not be recorded", f"check `{where.journal}`")
    if args.json:
        names = [run.run_id for run in done.runs]
        left = {"servers_left": done.servers_left}
        out.json({**done.stop._asdict(), "state": "killed", "runs": names, **left})
    else:
        _print(target, done, out)
    if done.servers_left:
        out.warning(
            f"processes of servers are still running: {', '.join(map(str, done.servers_left))}",
            "they serve other runs too, or their shim is suspended; `sub kill --all --hard` ends"
            " all of them",
        )
    return ExitCode.NO if done.servers_left else ExitCode.OK


def _print(target: Target, done: Switched, out: Output) -> None:
    count = len(done.shim_pids)
    told = f"{count} process{'es' if count > 1 else ''} will refuse its calls from now on"
    out.line(f"stopped {shown(str(target))}" + (f": {told}" if count else ""))
    out.talk(f"`sub revive {shown(target.words)}` lifts the stop.")


def _list(args: Args, out: Output, state_dir: str) -> int:
    try:
        found = sorted(stops(state_dir), key=lambda stop: stop.at)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        out.warning(f"the kill switch cannot be read, so everything is stopped: {reason}")
        return ExitCode.NO
    for each in found:
        if args.json:
            out.json(each._asdict())
        else:
            out.line(_line(each))
    if not found and not args.json:
        out.talk("Nothing is stopped.")
    return ExitCode.OK


def _line(stop: Stop) -> str:
    if stop.problem:
        return shown(stop.sentence)
    what = "everything" if stop.scope == "all" else f"{stop.scope} {stop.target}"
    hard = ", hard" if stop.hard else ""
    reason = f": {stop.reason}" if stop.reason else ""
    return shown(f"{stop.at}  {what}, by {stop.by}{hard}{reason}")
