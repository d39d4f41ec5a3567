"""`sub kill`: stops a run, an agent, a tool or everything, from the next call on.

Anyone may: an agent that stops itself does no harm. Lifting it is for a person (`sub revive`).
"""

import os
import time

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import Output, shown
from subluminal.config.places import places
from subluminal.core.controls.kill_switch import Stop, set_stop, stops
from subluminal.errors import ExitCode
from subluminal.operator.stopping import add_target, cannot, concerned, record_switch, target_of
from subluminal.trust.identity.users import local_user

EXAMPLE = """sub kill 0198c0de --reason "it deletes branches"
sub kill --agent fixer --hard
sub kill --tool github/delete_repo
sub kill --all
sub kill --list"""

_PATIENCE_S = 5.0
"""A shim looks twice a second, and a server has half a second after SIGTERM."""
_LOOK_S = 0.02


def add_arguments(parser: Parser) -> None:
    add_target(parser)
    parser.add_argument(
        "--hard", action="store_true", help="stop the servers' processes too, not only their calls"
    )
    parser.add_argument("--list", action="store_true", help="print what is stopped")


def run(args: Args, out: Output) -> int:
    where = places(os.environ)
    if args.list:
        return _list(args, out, where.state)
    target = target_of(args, where)
    try:
        stop = set_stop(
            where.state,
            target.scope,
            target.name,
            by=local_user(),
            reason=args.reason,
            hard=args.hard,
        )
    except OSError as error:
        raise cannot(f"stop {target}", error, where) from None
    runs = concerned(where, target)
    if not record_switch(where, stop, "killed", runs):
        out.warning("it is stopped, but that could not be recorded", f"see `{where.journal}`")
    pids = {pid for run in runs for pid in run.pids}
    # Which of them stand before a tool's server is theirs to know.
    left = _wait_for_servers(pids) if args.hard and target.scope != "tool" else []
    if args.json:
        names = [run.run_id for run in runs]
        out.json({**stop._asdict(), "state": "killed", "runs": names, "servers_left": left})
    else:
        told = f"{len(pids)} living processes refuse" if len(pids) != 1 else "1 process refuses"
        out.line(f"stopped {target}: {told} from the next call on" if pids else f"stopped {target}")
        out.talk(f"`sub revive {shown(target.words)}` lifts it")
    if left:
        out.warning(
            f"processes of servers still run: {', '.join(map(str, left))}",
            "they serve other runs too, or their shim is stopped; `sub kill --all --hard` ends all",
        )
    return ExitCode.NO if left else ExitCode.OK


def _wait_for_servers(shims: set[int]) -> list[int]:
    """Gives the shims time to end their servers; returns the processes that are left."""
    from subluminal.supervise.orphans import servers_of

    deadline = time.monotonic() + _PATIENCE_S
    while (left := servers_of(shims)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    return left


def _list(args: Args, out: Output, state_dir: str) -> int:
    try:
        found = sorted(stops(state_dir), key=lambda stop: stop.at)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        out.warning(f"what is stopped cannot be read, so everything is: {reason}")
        return ExitCode.NO
    for stop in found:
        if args.json:
            out.json(stop._asdict())
        else:
            out.line(_line(stop))
    if not found and not args.json:
        out.talk("nothing is stopped")
    return ExitCode.OK


def _line(stop: Stop) -> str:
    if stop.problem:
        return shown(stop.sentence)
    what = "everything" if stop.scope == "all" else f"{stop.scope} {stop.target}"
    hard = ", hard" if stop.hard else ""
    reason = f": {stop.reason}" if stop.reason else ""
    return shown(f"{stop.at}  {what}, by {stop.by}{hard}{reason}")
