"""What `sub kill` and `sub revive` share: which stop is meant, whom it concerns, the record of it.

Light to load, like the switch itself; what makes the record is loaded after the switch is pulled.
"""

import os
from typing import NamedTuple

from subluminal.cli.frame import Args, Parser
from subluminal.cli.output import shown
from subluminal.config.places import Places
from subluminal.core.controls.kill_switch import Stop
from subluminal.core.runs.living import LivingRun, known_run, living_runs
from subluminal.errors import SubluminalError, UsageError
from subluminal.operator.said import said


class Target(NamedTuple):
    """What is to be stopped, or was."""

    scope: str
    name: str
    """run_id, agent_id or SERVER/TOOL; empty for `all`"""

    def __str__(self) -> str:
        return "everything" if self.scope == "all" else f"{self.scope} `{shown(self.name)}`"

    @property
    def words(self) -> str:
        """As it is typed."""
        if self.scope == "run":
            return self.name
        return "--all" if self.scope == "all" else f"--{self.scope} {self.name}"


def add_target(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN_ID", help="a run, or its beginning or end")
    parser.add_argument(
        "--agent", type=said, metavar="ID", help="every run of an agent, now and later"
    )
    parser.add_argument(
        "--tool",
        type=said,
        metavar="SERVER/TOOL",
        help="a tool everywhere; `*` stands for any server or tool",
    )
    parser.add_argument("--all", action="store_true", help="every run of this home")
    parser.add_argument(
        "--reason", type=said, default="", metavar="TEXT", help="why, for the record"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def target_of(args: Args, places: Places) -> Target:
    """The one thing that the command line names."""
    given = [
        Target(scope, value)
        for scope, value in (("run", args.run), ("agent", args.agent), ("tool", args.tool))
        if value is not None
    ]
    if args.all:
        given.append(Target("all", ""))
    if len(given) != 1:
        raise UsageError(
            "name one of RUN_ID, --agent ID, --tool SERVER/TOOL and --all",
            hint="`sub query runs` lists the runs, `sub kill --list` what is stopped",
        )
    (target,) = given
    if target.scope == "tool" and not all(target.name.partition("/")[::2]):
        raise UsageError(f"`{target.name}` names no tool", hint="write SERVER/TOOL, or SERVER/*")
    if target.scope != "all" and not target.name:
        raise UsageError(f"the {target.scope} has no name")
    if target.scope == "run":
        return Target("run", known_run(places, target.name))
    return target


def concerned(places: Places, target: Target) -> list[LivingRun]:
    """The living runs that a stop is about."""
    return [
        run
        for run in living_runs(places)
        if target.scope in ("all", "tool")
        or (target.scope == "run" and run.run_id == target.name)
        or (target.scope == "agent" and run.agent_id == target.name)
    ]


def record_switch(places: Places, stop: Stop, state: str, runs: list[LivingRun]) -> bool:
    """Journals who moved the switch, in every living run that it concerns."""
    from msgspec import UNSET

    from subluminal.contracts.control import Switch
    from subluminal.contracts.events import KillSwitch
    from subluminal.contracts.vocabulary import StopScope, SwitchState
    from subluminal.core.controls.operator_record import OPERATOR_RUN, identity_in, record_act

    switch = Switch(
        switch_id=stop.switch_id,
        state=SwitchState(state),
        scope=StopScope(stop.scope),
        target=stop.target or UNSET,
        by=stop.by,
        hard=stop.hard,
        reason=stop.reason or UNSET,
    )
    named = [stop.target] if stop.scope == "run" else []
    names = list(dict.fromkeys([*named, *(run.run_id for run in runs)])) or [OPERATOR_RUN]
    done = [
        record_act(places, name, identity_in(places, name), KillSwitch, switch=switch)
        for name in names
    ]
    return all(done)


def cannot(what: str, error: OSError, places: Places) -> SubluminalError:
    """The home does not let us."""
    if isinstance(error, SubluminalError):
        return error  # it says so itself
    reason = (error.strerror or str(error)).lower()
    where = os.path.join(places.state, "kill")
    return SubluminalError(f"cannot {what}: {reason}", hint=f"check who may write to `{where}`")
